//! The second trial: clients that send at once more than the server may hold.

use core::time::Duration;

use anyhow::Result;
use buftrials::system;
use buftrials::watch::Server;

use crate::clients::{self, Answered, Large, Payload};
use crate::engine::{Allocator, Engine, PROGRAM};
use crate::record::BudgetRun;
use crate::server::{Options, Status};

/// What the system keeps for a client that reads slowly, on either side.
const SLOW_BUFFER_BYTES: u32 = 64 << 10;

/// How many clients send how much into how little.
#[derive(Debug, Clone, Copy)]
pub struct Crowd {
    /// The number of clients.
    pub clients: usize,
    /// Of those, the number that read slowly. They want their frame back, whose buffer the server
    /// holds until they have it.
    pub slow: usize,
    /// Bytes of each frame.
    pub bytes: usize,
    /// The most bytes of the pool.
    pub budget: usize,
}

impl Crowd {
    /// The crowd that has to be served.
    pub const FULL: Self = Self { clients: 200, slow: 0, bytes: 1 << 20, budget: 32 << 20 };
    /// The same with slow readers in it.
    pub const SLOW: Self = Self { slow: 20, ..Self::FULL };
    /// A small crowd with too little room, to see that all of it works.
    pub const TEST: Self = Self { clients: 8, slow: 2, bytes: 1 << 20, budget: 4 << 20 };

    /// Lets the crowd loose on a fresh server. What the clients meet is in the result; the first
    /// failure ends it.
    ///
    /// # Errors
    ///
    /// When the server cannot be started, or has ended.
    pub fn run(&self, engine: Engine, allocator: Allocator) -> Result<BudgetRun> {
        let has_budget = matches!(engine, Engine::Shard | Engine::ShardKeeper);
        let budget = has_budget.then_some(self.budget);
        let buffer = (self.slow > 0).then_some(SLOW_BUFFER_BYTES);
        let options = Options { engine, budget, send_buffer: buffer };
        let mut server = Server::start(allocator.command(PROGRAM, "serve", &options)?)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let payload = Payload::new();
        let at_once = Duration::ZERO;
        let large = Large { bytes: self.bytes, spread: at_once, pace: at_once, slow: self.slow };
        let (before, asked) = runtime.block_on(async {
            let clients = clients::connect(server.address, self.clients, buffer).await?;
            let (clients, _) = clients::ask_small(clients, &payload, Duration::from_millis(100)).await?;
            let before = system::resident(server.id())?;
            anyhow::Ok((before, large.ask(clients, &payload).await))
        })?;
        let status: Status = server.status()?;
        let growth = system::peak(server.id())?.saturating_sub(before);
        let (answered, waits, failure) = match asked {
            Ok((clients, waits)) => (clients.len(), waits, None),
            Err(error) => (0, Vec::new(), Some(format!("{error:#}"))),
        };
        let (mean_wait, longest_wait) = mean_and_longest(&waits);
        Ok(BudgetRun {
            engine,
            allocator,
            clients: self.clients,
            slow: self.slow,
            bytes: self.bytes,
            budget,
            pool_peak: status.most_bytes.filter(|_| has_budget),
            growth,
            answered,
            failure,
            mean_wait,
            longest_wait,
        })
    }
}

/// In milliseconds.
fn mean_and_longest(waits: &[Answered]) -> (f64, f64) {
    let millis = waits.iter().map(|answered| answered.wait.as_secs_f64() * 1e3);
    let longest = millis.clone().fold(0.0, f64::max);
    (millis.sum::<f64>() / waits.len().max(1) as f64, longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_summed_up() {
        let wait = |millis| Answered { client: 0, wait: Duration::from_millis(millis) };
        let (mean, longest) = mean_and_longest(&[wait(10), wait(30), wait(50)]);
        assert!((mean - 30.0).abs() < 1e-9 && (longest - 50.0).abs() < 1e-9);
        assert_eq!(mean_and_longest(&[]), (0.0, 0.0));
    }
}

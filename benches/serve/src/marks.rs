//! What has to hold of the results.

use buftrials::allocator::Allocator;
use buftrials::mark::Mark;
use buftrials::table::mib;

use crate::plan::Results;
use crate::service::Framework;
use crate::stock::Stock;
use crate::trial::{Figure, Measured};
use crate::work::{Cell, Engine, Work};

const SECONDS: Figure = |run| run.used.seconds();
const KERNEL: Figure = |run| run.used.kernel;
const PAGE_BYTES: f64 = 4096.0;
const MIB: f64 = (1 << 20) as f64;

/// All that can be judged by these results.
#[must_use]
pub fn all(results: &Results) -> Vec<Mark> {
    Work::all()
        .flat_map(|work| {
            [Allocator::Glibc, Allocator::Mimalloc, Allocator::Bufalloc].map(|allocator| (work, allocator))
        })
        .flat_map(|(work, allocator)| of_work(results, work, allocator))
        .collect()
}

fn of_work(results: &Results, work: Work, allocator: Allocator) -> Vec<Mark> {
    let is_stock = matches!(work, Work::Stock(_));
    let judged = if is_stock { Engine::Stock } else { Engine::PoolKeeper };
    let one = Cell { work, engine: judged, allocator };
    let plain = Cell { engine: Engine::Pool, ..one };
    // What people write today is over the allocator of the system.
    let habit = if is_stock { Engine::Stock } else { Engine::Vec };
    let today = Cell { engine: habit, allocator: Allocator::Glibc, ..one };
    let mark = |cell: Cell, what: &str, found: String, holds| Mark {
        what: format!("{}, {}: {what}", work.title(), cell.title()),
        found,
        holds,
    };
    let at_most = |cell, what: &str, figure: Figure, most: f64| {
        let found = results.median(cell, figure)?;
        Some(mark(cell, &format!("{what}, at most {most} MiB"), mib(found), found <= most * MIB))
    };
    let ratio_of = |what: &str, (figure, to): (Option<f64>, Option<f64>), most: f64| {
        let ratio = figure? / to?;
        Some(mark(one, &format!("{what}, at most {most}"), format!("{ratio:.2}"), ratio <= most))
    };
    let compared = |what: &str, figure: Figure, other: Cell, most: f64| {
        ratio_of(what, (results.median(one, figure), results.median(other, figure)), most)
    };
    let own = |what: &str, figure: Figure, to: Figure, most: f64| {
        ratio_of(what, (results.median(one, figure), results.median(one, to)), most)
    };
    let [peak, kept]: [Figure; 2] = [Measured::peak, Measured::kept];
    let marks = match work {
        Work::Service(Framework::Axum | Framework::Hyper) => vec![
            at_most(one, "peak", peak, 74.0),
            compared("processor time, to what is written today over glibc", SECONDS, today, 1.1),
            at_most(one, "kept after 3 s", kept, 12.0),
            own(
                "bytes faulted in, to bytes asked for",
                |run| run.used.faults as f64 * PAGE_BYTES,
                |run| run.asked as f64,
                0.05,
            ),
            compared("time in the kernel, to what is written today over glibc", KERNEL, today, 1.2),
        ],
        Work::Service(Framework::Tonic) => {
            vec![compared("processor time, to prost and semaphore over glibc", SECONDS, today, 1.2)]
        }
        Work::Container => {
            let killed = results.of(plain).any(|run| run.killed);
            let contained = results.of(plain).any(|run| run.contained);
            vec![
                contained.then(|| mark(plain, "is not killed", format!("killed: {killed}"), !killed)),
                at_most(plain, "peak", peak, 60.0).filter(|_| !killed),
            ]
        }
        Work::Relay { bounded: true, .. } => {
            vec![compared("processor time, to the same without a keeper", SECONDS, plain, 1.05)]
        }
        Work::Relay { bytes: 4096, .. } => vec![at_most(one, "kept after 3 s", kept, 8.0)],
        Work::Stock(stock) if allocator == Allocator::Bufalloc => {
            let time = |most| compared("processor time, to glibc", SECONDS, today, most);
            match stock {
                // With open connections, hyper has its read buffers.
                Stock::Upload => vec![
                    at_most(
                        one,
                        "3 s after connections are closed, all of it",
                        |run| run.closed as f64,
                        24.0,
                    ),
                    time(1.05),
                ],
                Stock::Requests => vec![time(1.02)],
                Stock::Messages => {
                    vec![at_most(one, "idle after 3 s, all of it", |run| run.after as f64, 40.0), time(1.05)]
                }
                Stock::Websocket | Stock::Frames => Vec::new(),
            }
        }
        Work::Relay { .. } | Work::Stock(_) => Vec::new(),
        Work::Burst { survivors: false, .. } => vec![at_most(one, "kept after 3 s", kept, 12.0)],
        Work::Burst { .. } => {
            vec![own("kept after 3 s, to the pages of the survivors", kept, |run| run.held as f64, 1.3)]
        }
    };
    marks.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fixture;

    fn judged(times: f64) -> Vec<bool> {
        let mut runs = Vec::new();
        for work in Work::all() {
            if let Work::Stock(_) = work {
                for (allocator, times) in [(Allocator::Glibc, 1.0), (Allocator::Bufalloc, times)] {
                    let (cell, measured) = fixture::run(work, Engine::Stock, times);
                    runs.push((Cell { allocator, ..cell }, measured));
                }
                continue;
            }
            for engine in [Engine::Vec, Engine::Pool, Engine::PoolKeeper] {
                let is_judged =
                    work.has(Engine::PoolKeeper, Allocator::Glibc) == (engine == Engine::PoolKeeper);
                runs.push(fixture::run(work, engine, if is_judged { times } else { 1.0 }));
            }
        }
        all(&fixture::results(runs)).iter().map(|mark| mark.holds).collect()
    }

    #[test]
    fn each_mark_can_fail() {
        assert_eq!(judged(1.0), [true; 25]);
        assert_eq!(judged(2.1), [false; 25]);
    }

    #[test]
    fn who_is_killed_has_no_peak() {
        let (cell, measured) = fixture::run(Work::Container, Engine::Pool, 1.0);
        let killed = Measured { contained: true, killed: true, ..measured };
        let marks = all(&fixture::results(vec![(cell, killed)]));
        assert_eq!(marks.iter().map(|mark| mark.holds).collect::<Vec<_>>(), [false]);
        assert_eq!(marks[0].found, "killed: true");
    }
}

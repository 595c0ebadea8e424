//! Threads that a recording could not tell apart: the number of a thread that has ended is given to
//! a later one, which may do something else. A proxy's reader then has the number that a writer
//! had, and no sharing out would keep readers and writers apart.

use super::traffic::{Act, Traffic};

/// Buffers of a life at least, on average: where there are fewer, no threads have ended, but
/// each does both in turn.
const LEAST_BUFFERS: usize = 16;

/// Traffic whose threads are lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadSplit {
    pub(crate) traffic: Traffic,
    /// For each life the one before it that had the same number, whose pool nobody uses any more
    /// once this one has begun.
    pub(crate) before: Vec<Option<u32>>,
}

/// What a thread exchanges with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Acquires,
    Releases,
}

/// A thread as far as it has been looked at.
#[derive(Debug, Clone, Copy)]
struct Life {
    number: u32,
    role: Option<Role>,
    /// Buffers that it has acquired, or will release, and that are out.
    open: usize,
}

/// Returns the same traffic, where a thread is a new one once it has nothing out and changes from
/// acquiring for others to releasing what others acquired, or back.
pub(crate) fn split_threads(traffic: &Traffic) -> ThreadSplit {
    let mut told = traffic.clone();
    let mut lives: Vec<Life> =
        (0..traffic.threads as u32).map(|number| Life { number, role: None, open: 0 }).collect();
    let mut before = vec![None; traffic.threads];
    for (index, (thread, act)) in traffic.acts.iter().enumerate() {
        let (Act::Acquire(number) | Act::Release(number)) = *act;
        let buffer = traffic.buffers[number as usize];
        let (from, to) = (buffer.from as usize, buffer.to as usize);
        let (me, role) = match act {
            Act::Acquire(_) => (from, Role::Acquires),
            Act::Release(_) => (to, Role::Releases),
        };
        if from != to {
            for (one, role) in [(from, Role::Acquires), (to, Role::Releases)] {
                let life = &mut lives[one];
                if matches!(act, Act::Acquire(_))
                    && life.open == 0
                    && life.role.is_some_and(|other| other != role)
                {
                    before.push(Some(life.number));
                    life.number = before.len() as u32 - 1;
                }
            }
            lives[me].role = Some(role);
        }
        match act {
            Act::Acquire(_) => {
                told.buffers[number as usize].from = lives[from].number;
                told.buffers[number as usize].to = lives[to].number;
                lives[from].open += 1;
                lives[to].open += 1;
            }
            Act::Release(_) => {
                lives[from].open -= 1;
                lives[to].open -= 1;
            }
        }
        debug_assert_eq!(me, *thread as usize, "a buffer is taken and returned by whom it names");
        told.acts[index].0 = match act {
            Act::Acquire(_) => told.buffers[number as usize].from,
            Act::Release(_) => told.buffers[number as usize].to,
        };
    }
    told.threads = before.len();
    if told.threads > traffic.threads + traffic.buffers.len() / LEAST_BUFFERS {
        return ThreadSplit { traffic: traffic.clone(), before: vec![None; traffic.threads] };
    }
    ThreadSplit { traffic: told, before }
}

#[cfg(test)]
mod tests {
    use super::super::traffic::tests::{random, trace};
    use super::*;

    #[test]
    fn a_number_that_is_used_again_is_two_threads() {
        // A reader 0 and a writer 1; then the writer has the number 0, and the reader 1.
        let mut events = Vec::new();
        for (reader, writer) in [(0, 1), (1, 0)] {
            for _ in 0..50 {
                events.extend([(reader, 0, Some(9)), (writer, 0, None)]);
            }
        }
        let traffic = Traffic::new(&trace(&events));
        let ThreadSplit { traffic: told, before } = split_threads(&traffic);
        assert_eq!(told.threads, 4);
        assert_eq!((told.buffers[49].from, told.buffers[49].to), (0, 1));
        let (reader, writer) = (told.buffers[50].from, told.buffers[50].to);
        assert_eq!((before[reader as usize], before[writer as usize]), (Some(1), Some(0)));
        assert_eq!((told.acts[100].0, told.acts[101].0), (reader, writer));
    }

    #[test]
    fn who_does_both_all_the_time_stays_one() {
        let traffic = Traffic::new(&random(3, 500, 100));
        let told = split_threads(&traffic).traffic;
        assert_eq!(told.buffers.len(), traffic.buffers.len());
        assert!(told.threads <= 3 + traffic.buffers.len() / LEAST_BUFFERS, "{}", told.threads);
        let alone = Traffic::new(&random(1, 500, 100));
        assert_eq!(split_threads(&alone).traffic, alone);
        // Two threads that answer each other, one buffer at a time.
        let events: Vec<_> = (0..100).flat_map(|n| [(n % 2, 0, Some(9)), (1 - n % 2, 0, None)]).collect();
        let traffic = Traffic::new(&trace(&events));
        assert_eq!(split_threads(&traffic).traffic, traffic);
    }
}

//! `chaos`: the benchmark of that name of jsign's `bufpool`. A hundred tasks; each acquires a
//! buffer of random size, holds it for a random while, drops it and continues with the next, a
//! thousand times.
//!
//! The original starts a goroutine for each task and lets it sleep, so that nearly all of the time
//! goes to the scheduler. Here the scheduler's work is done beforehand: lifetimes are drawn from
//! the same distribution, and the tasks' requests are put in the order in which they then come. One
//! thread serves all tasks in that order, or several threads serve a share of the tasks each, from
//! one pool where the contestant has such.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::thread;
use std::time::{Duration, Instant};

use super::not_mine;
use crate::harness::block::touch;
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::check;
use crate::harness::crew::{Crew, Handle, Private, Seed};
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

/// Tasks, each of which has one buffer.
const TASKS: usize = 100;
/// Buffers that each of them has, one after the other.
const BUFFERS: usize = 1000;
/// What the sizes lie around; a tenth of it is their standard deviation. Ten bytes are the
/// original's.
const SIZES: [usize; 2] = [10, 2 << 10];
/// Standard deviation of the lifetimes, in times of their mean.
const LIFETIME_DEVIATION: f64 = 0.3;
/// A unit of time is cut into this number of ticks, to have an order of whole numbers.
const TICKS: f64 = 1e6;

pub(super) fn cases() -> Vec<Case> {
    let threads = thread::available_parallelism().map_or(2, usize::from).max(2);
    let case = |bytes| [1, threads].map(|threads| Case::Chaos { bytes, threads });
    SIZES.into_iter().flat_map(case).collect()
}

/// A task drops the buffer that it has, and acquires the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    task: u16,
    bytes: u16,
}

/// A normally distributed number (Box and Muller 1958).
fn normal(random: &mut fastrand::Rng, mean: f64, deviation: f64) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    mean + deviation * radius * (core::f64::consts::TAU * random.f64()).cos()
}

/// What one of `threads` threads has to do: every such task's requests, in the order of their time.
fn script(bytes: usize, threads: usize, thread: usize) -> Vec<Step> {
    let mean = bytes as f64;
    let mut tasks: Vec<(usize, fastrand::Rng)> = (0..TASKS)
        .filter(|task| task % threads == thread)
        .map(|task| (0, fastrand::Rng::with_seed(task as u64)))
        .collect();
    let mut due: BinaryHeap<Reverse<(u64, usize)>> =
        (0..tasks.len()).map(|task| Reverse((0, task))).collect();
    let mut steps = Vec::with_capacity(tasks.len() * BUFFERS);
    while let Some(Reverse((time, task))) = due.pop() {
        let (done, random) = &mut tasks[task];
        // A buffer of no bytes asks nothing of anybody.
        let bytes = normal(random, mean, mean / 10.0).max(1.0) as u16;
        steps.push(Step { task: task as u16, bytes });
        *done += 1;
        if *done < BUFFERS {
            let lifetime = normal(random, 1.0, LIFETIME_DEVIATION).max(0.0);
            due.push(Reverse((time + (lifetime * TICKS) as u64, task)));
        }
    }
    steps
}

/// What a pool for the tasks of these scripts has to hold.
fn plan(scripts: &[&[Step]]) -> Plan {
    let (mut live, mut peak_bytes, mut largest) = (0, 0, 0);
    for steps in scripts {
        let mut tasks = [0; TASKS];
        let (mut bytes_out, mut peak) = (0, 0);
        for step in *steps {
            let bytes = usize::from(step.bytes);
            bytes_out = bytes_out + bytes - core::mem::replace(&mut tasks[usize::from(step.task)], bytes);
            peak = peak.max(bytes_out);
            largest = largest.max(bytes);
        }
        live += tasks.iter().filter(|bytes| **bytes > 0).count();
        peak_bytes += peak;
    }
    Plan::mixed(live, largest, peak_bytes)
}

/// The buffers of the tasks.
struct Live<B>(Vec<Option<B>>);

impl<B> Live<B> {
    fn new() -> Self {
        Self(check::empty(TASKS))
    }

    #[inline(always)]
    fn play<P: Pool<Buf = B>>(&mut self, pool: &mut P, steps: &[Step])
    where
        B: crate::harness::block::Block,
    {
        for step in steps {
            let place = &mut self.0[usize::from(step.task)];
            *place = None;
            let mut buf = pool.acquire(usize::from(step.bytes));
            touch(&mut buf);
            *place = Some(buf);
        }
    }
}

fn check<P: Pool>(pool: &mut P, plan: &Plan, thread: usize, steps: &[Step]) -> Result<(), String> {
    let seed = (thread as u64) << 32;
    check::pool_from(pool, plan, seed, &|index| usize::from(steps[index % steps.len()].bytes))
}

/// One thread for all tasks.
struct Alone<P: Pool> {
    pool: P,
    plan: Plan,
    steps: Vec<Step>,
    live: Live<P::Buf>,
}

pub(super) fn alone<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Chaos { bytes, threads: 1 } = case else { return Err(not_mine(case)) };
    let steps = script(bytes, 1, 0);
    let plan = plan(&[&steps]).with(settings);
    Ok(Box::new(Alone { pool: P::build(&plan)?, plan, steps, live: Live::new() }))
}

impl<P: Pool> Cell for Alone<P> {
    fn check(&mut self) -> Result<(), String> {
        check(&mut self.pool, &self.plan, 0, &self.steps)
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..iterations {
            self.live.play(&mut self.pool, &self.steps);
        }
        start.elapsed()
    }

    fn operations(&self) -> u64 {
        self.steps.len() as u64
    }

    fn fallbacks(&self) -> Option<u64> {
        self.pool.fallbacks()
    }
}

/// Several threads, a share of the tasks each.
struct Together<T> {
    crew: Crew<T>,
    /// What one thread holds.
    share: Plan,
    scripts: Vec<Vec<Step>>,
}

/// The scripts of all threads, with the plan of all and that of one.
fn parts(case: &Case) -> Result<(Vec<Vec<Step>>, Plan, Plan), Unsupported> {
    let &Case::Chaos { bytes, threads } = case else { return Err(not_mine(case)) };
    let scripts: Vec<Vec<Step>> = (0..threads).map(|thread| script(bytes, threads, thread)).collect();
    let all: Vec<&[Step]> = scripts.iter().map(Vec::as_slice).collect();
    // The first thread has as many tasks as any.
    let (whole, share) = (plan(&all), plan(&all[..1]));
    let largest = whole.largest;
    Ok((scripts, whole, Plan { largest, peak_bytes: share.peak_bytes + largest, ..share }))
}

pub(super) fn shared<P: Pool + Clone + Send>(
    case: &Case,
    settings: Settings,
) -> Result<Box<dyn Cell>, Unsupported> {
    let (scripts, whole, share) = parts(case)?;
    let crew = Crew::<Handle<P>>::shared(scripts.len(), &whole.with(settings))?;
    Ok(Box::new(Together { crew, share, scripts }))
}

pub(super) fn private<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let (scripts, _, share) = parts(case)?;
    let crew = Crew::<Private<P>>::private(scripts.len(), &share.with(settings))?;
    Ok(Box::new(Together { crew, share, scripts }))
}

impl<T: Seed> Cell for Together<T> {
    fn check(&mut self) -> Result<(), String> {
        let (share, scripts) = (&self.share, &self.scripts);
        let work =
            |pool: &mut T::Pool, thread: usize, (): &mut ()| check(pool, share, thread, &scripts[thread]);
        self.crew.each(|_, _| (), work).map(drop)
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let scripts = &self.scripts;
        // Every task has a buffer then.
        let prepare = |pool: &mut T::Pool, thread: usize| {
            let mut live = Live::new();
            live.play(pool, &scripts[thread][..TASKS]);
            live
        };
        let work = |pool: &mut T::Pool, thread: usize, live: &mut Live<_>| {
            for _ in 0..iterations {
                live.play(pool, &scripts[thread]);
            }
            Ok(())
        };
        self.crew.each(prepare, work).expect("no thread has an error")
    }

    /// Those of one thread, as in `threads`.
    fn operations(&self) -> u64 {
        self.scripts[0].len() as u64
    }

    fn threads(&self) -> u64 {
        self.crew.threads as u64
    }

    fn note(&self) -> Option<&'static str> {
        Some(self.crew.note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::slot::SlotBuffers;
    use crate::adapters::vec::VecPool;

    #[test]
    fn scripts_are_the_same_each_time_and_as_described() {
        let steps = script(2048, 1, 0);
        assert_eq!(steps, script(2048, 1, 0));
        assert_eq!(steps.len(), TASKS * BUFFERS);
        let mean = steps.iter().map(|step| f64::from(step.bytes)).sum::<f64>() / steps.len() as f64;
        assert!((2040.0..2056.0).contains(&mean), "{mean}");
        let near = steps.iter().filter(|step| (1843..=2253).contains(&step.bytes)).count();
        let share = near as f64 / steps.len() as f64;
        assert!((0.67..0.70).contains(&share), "{share} within one standard deviation");
        let of_first = steps.iter().filter(|step| step.task == 0).count();
        assert_eq!(of_first, BUFFERS);
        assert!(steps[TASKS..2 * TASKS].windows(2).any(|two| two[0].task > two[1].task), "in no fixed order");
        assert!(script(10, 1, 0).iter().all(|step| (1..=16).contains(&step.bytes)));
    }

    #[test]
    fn threads_share_the_tasks() {
        let (scripts, whole, share) = parts(&Case::Chaos { bytes: 10, threads: 3 }).unwrap();
        assert_eq!(scripts.iter().map(Vec::len).sum::<usize>(), TASKS * BUFFERS);
        assert_eq!((whole.live, share.live), (TASKS, 34));
        assert!(share.peak_bytes < whole.peak_bytes);
    }

    #[test]
    fn every_row_keeps_its_bytes() {
        for case in cases() {
            let cells = match case {
                Case::Chaos { threads: 1, .. } => [
                    alone::<VecPool>(&case, Settings::Planned),
                    alone::<SlotBuffers>(&case, Settings::Planned),
                ],
                _ => [
                    shared::<VecPool>(&case, Settings::Planned),
                    private::<SlotBuffers>(&case, Settings::Planned),
                ],
            };
            for cell in cells {
                let mut cell = cell.unwrap_or_else(|reason| panic!("{case}: {}", reason.0));
                let operations = cell.operations() * cell.threads();
                assert!(
                    operations.abs_diff((TASKS * BUFFERS) as u64) < BUFFERS as u64 * cell.threads(),
                    "{case}"
                );
                assert_eq!(cell.check(), Ok(()), "{case}");
                assert!(cell.run(1) > Duration::ZERO);
            }
        }
    }
}

//! `tasks`: the benchmark `chaos` of jsign's `bufpool`. A hundred tasks; each acquires a
//! buffer of random size, holds it for a random while, drops it and continues with the next, a
//! thousand times.
//!
//! The original starts a goroutine for each task and lets it sleep, so that nearly all of the time
//! goes to the scheduler. Here the scheduler's work is done beforehand: lifetimes are drawn from
//! the same distribution, and the tasks' requests are put in the order in which they then come. One
//! thread serves all tasks in that order, or several threads serve a share of the tasks each, from
//! one pool where the engine has such.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::thread;
use std::time::Duration;

use super::script::{self, Script, Step};
use super::{MakeCrew, not_mine};
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::crew::Crew;
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
    let case = |bytes| [1, threads].map(|threads| Case::Tasks { bytes, threads });
    SIZES.into_iter().flat_map(case).collect()
}

/// A normally distributed number (Box and Muller 1958).
fn normal(random: &mut fastrand::Rng, mean: f64, deviation: f64) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    mean + deviation * radius * (core::f64::consts::TAU * random.f64()).cos()
}

/// What one of `threads` threads has to do: every such task's requests, in the order of their time.
fn script(bytes: usize, threads: usize, thread: usize) -> Script {
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
        let bytes = normal(random, mean, mean / 10.0).max(1.0) as u32;
        steps.push(Step { place: task as u32, bytes });
        *done += 1;
        if *done < BUFFERS {
            let lifetime = normal(random, 1.0, LIFETIME_DEVIATION).max(0.0);
            due.push(Reverse((time + (lifetime * TICKS) as u64, task)));
        }
    }
    Script::new(steps)
}

/// The cell in which one thread serves all tasks.
pub(super) fn alone<P: Pool>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Tasks { bytes, threads: 1 } = case else { return Err(not_mine(case)) };
    let script = script(bytes, 1, 0);
    let plan = script.plan();
    script::cell::<P>(script, plan, settings)
}

/// Several threads, a share of the tasks each.
struct Together<P> {
    crew: Crew<P>,
    /// What one thread holds.
    share: Plan,
    scripts: Vec<Script>,
}

/// The scripts of all threads, with the plan of all and that of one.
fn parts(case: &Case) -> Result<(Vec<Script>, Plan, Plan), Unsupported> {
    let &Case::Tasks { bytes, threads } = case else { return Err(not_mine(case)) };
    let scripts: Vec<Script> = (0..threads).map(|thread| script(bytes, threads, thread)).collect();
    let sum = |of: fn(&Script) -> usize| scripts.iter().map(of).sum();
    let largest = scripts.iter().map(|script| script.largest).max().unwrap_or(0);
    let whole = Plan::mixed(sum(|script| script.live), largest, sum(|script| script.peak_bytes));
    // The first thread has as many tasks as any.
    let first = &scripts[0];
    let share = Plan::mixed(first.live, largest, first.peak_bytes + largest);
    Ok((scripts, whole, share))
}

/// The cell in which several threads serve a share of the tasks each.
pub(super) fn cell<P: Pool>(
    case: &Case,
    is_shared: bool,
    crew: MakeCrew<'_, P>,
) -> Result<Box<dyn Cell>, Unsupported> {
    let (scripts, whole, share) = parts(case)?;
    let crew = crew(scripts.len(), if is_shared { whole } else { share })?;
    Ok(Box::new(Together { crew, share, scripts }))
}

impl<P: Pool> Cell for Together<P> {
    fn check(&mut self) -> Result<(), String> {
        let (share, scripts) = (&self.share, &self.scripts);
        let work = |pool: &mut P, thread: usize, (): &mut ()| {
            scripts[thread].check(pool, share, (thread as u64) << 32)
        };
        self.crew.each(|_, _| (), work).map(drop)
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let scripts = &self.scripts;
        // Every task has a buffer then.
        let prepare = |pool: &mut P, thread: usize| {
            let script = &scripts[thread];
            let mut live = script.places();
            let tasks = script.live.min(script.steps.len());
            script::play_all(pool, &mut live, &script.steps[..tasks]);
            live
        };
        let work = |pool: &mut P, thread: usize, live: &mut Vec<_>| {
            for _ in 0..iterations {
                script::play_all(pool, live, &scripts[thread].steps);
            }
            Ok(())
        };
        self.crew.each(prepare, work).expect("no thread has an error")
    }

    /// Those of one thread, as in `threads`.
    fn operations(&self) -> u64 {
        self.scripts[0].acquires
    }

    fn threads(&self) -> u64 {
        self.crew.threads as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::slot::SlotBuffers;
    use crate::adapters::vec::VecPool;
    use crate::workloads::{private, shared};

    #[test]
    fn scripts_are_the_same_each_time_and_as_described() {
        let script = |bytes| script(bytes, 1, 0);
        let steps = &script(2048).steps;
        assert_eq!(*steps, script(2048).steps);
        assert_eq!(steps.len(), TASKS * BUFFERS);
        let mean = steps.iter().map(|step| f64::from(step.bytes)).sum::<f64>() / steps.len() as f64;
        assert!((2040.0..2056.0).contains(&mean), "{mean}");
        let near = steps.iter().filter(|step| (1843..=2253).contains(&step.bytes)).count();
        let share = near as f64 / steps.len() as f64;
        assert!((0.67..0.70).contains(&share), "{share} within one standard deviation");
        assert!(
            steps[TASKS..2 * TASKS].windows(2).any(|two| two[0].place > two[1].place),
            "in no fixed order"
        );
        assert!(script(10).steps.iter().all(|step| (1..=16).contains(&step.bytes)));
    }

    #[test]
    fn threads_share_the_tasks() {
        let case = Case::Tasks { bytes: 10, threads: 3 };
        let (scripts, whole, share) = parts(&case).unwrap();
        assert_eq!(scripts.iter().map(|script| script.steps.len()).sum::<usize>(), TASKS * BUFFERS);
        assert_eq!((whole.live, share.live), (TASKS, 34));
        assert!(share.peak_bytes < whole.peak_bytes);
        for cell in
            [shared::<VecPool>(&case, Settings::Planned), private::<SlotBuffers>(&case, Settings::Planned)]
        {
            let mut cell = cell.unwrap();
            assert_eq!(cell.check(), Ok(()));
            assert!(cell.run(1) > Duration::ZERO);
        }
    }
}

//! Tasks that several threads take from one queue, so that no processor waits while there is something to do.

use std::num::NonZero;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use anyhow::Result;

/// The tasks that nobody has taken, and the groups of those that run.
#[derive(Debug)]
struct Waiting<T> {
    tasks: Vec<T>,
    busy: Vec<&'static str>,
}

/// How many processors this process may use.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs `work` on each of `tasks`, at most `at_once` at a time, and hands every result to `done` on this thread. Returns the first error.
pub(crate) fn try_run<T: Send, R: Send>(
    tasks: Vec<T>,
    at_once: usize,
    work: impl Fn(T) -> Result<R> + Sync,
    mut done: impl FnMut(R),
) -> Result<()> {
    let mut outcome = Ok(());
    run(
        tasks,
        at_once,
        |_| "",
        work,
        |result| match result {
            Ok(result) => done(result),
            Err(error) if outcome.is_ok() => outcome = Err(error),
            Err(_) => {}
        },
    );
    outcome
}

/// Runs `work` on each of `tasks`, at most `at_once` at a time, and hands every result to `done` on this thread.
///
/// The first task that can start is taken first. Tasks of one group never run at the same time; those of the group `""` belong to none.
pub(crate) fn run<T: Send, R: Send>(
    tasks: Vec<T>,
    at_once: usize,
    group: impl Fn(&T) -> &'static str + Sync,
    work: impl Fn(T) -> R + Sync,
    mut done: impl FnMut(R),
) {
    let workers = at_once.min(tasks.len());
    let waiting = Mutex::new(Waiting { tasks, busy: Vec::new() });
    let changed = Condvar::new();
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, waiting, changed, group, work) = (sender.clone(), &waiting, &changed, &group, &work);
            scope.spawn(move || {
                while let Some(task) = take(waiting, changed, group) {
                    let name = group(&task);
                    let result = work(task);
                    lock(waiting).busy.retain(|busy| *busy != name);
                    changed.notify_all();
                    // The receiver lives until all workers are done.
                    drop(sender.send(result));
                }
            });
        }
        drop(sender);
        results.iter().for_each(&mut done);
    });
}

/// The first task whose group is not busy; waits while all of them are. `None` when no task is left.
fn take<T>(waiting: &Mutex<Waiting<T>>, changed: &Condvar, group: impl Fn(&T) -> &'static str) -> Option<T> {
    let mut waiting = lock(waiting);
    loop {
        if waiting.tasks.is_empty() {
            return None;
        }
        let free = waiting.tasks.iter().position(|task| !waiting.busy.contains(&group(task)));
        if let Some(at) = free {
            let task = waiting.tasks.remove(at);
            let name = group(&task);
            if !name.is_empty() {
                waiting.busy.push(name);
            }
            return Some(task);
        }
        waiting = changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Locks `mutex`, ignoring poisoning: a list of tasks is whole at every moment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_task_runs_once() {
        let mut seen = Vec::new();
        run((0..100).collect(), 2, |_| "", |task| task * 2, |result: i32| seen.push(result));
        seen.sort_unstable();
        assert_eq!(seen, (0..100).map(|task| task * 2).collect::<Vec<_>>());
        run(Vec::<()>::new(), 2, |()| "", |()| panic!("there is no task"), |()| {});
    }

    #[test]
    fn a_group_runs_one_at_a_time() {
        let running = Mutex::new(());
        let work = |_| {
            let alone = running.try_lock().is_ok();
            let _running = running.lock();
            thread::sleep(Duration::from_millis(1));
            alone
        };
        let mut all_alone = true;
        run((0..20).collect(), 2, |_: &i32| "one", work, |alone| all_alone &= alone);
        assert!(all_alone);
    }
}

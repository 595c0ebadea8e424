//! Where threads run: each on a processor of its own, as long as there are enough.
//!
//! A run takes milliseconds. For that long the system leaves a new thread where it was started or
//! woken, which is often beside its creator on the same processor. Left to itself, one run times
//! two processors and the next one times how the system switches between two threads, which takes
//! ten times as long.

#[cfg(target_os = "linux")]
pub use linux::pin;

/// The system does not let us choose.
#[cfg(not(target_os = "linux"))]
pub fn pin(_index: usize) -> Option<core::convert::Infallible> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use core::marker::PhantomData;
    use std::collections::BTreeSet;
    use std::fs;
    use std::sync::OnceLock;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    /// Undoes itself: the thread may run where it could before.
    #[derive(Debug)]
    pub struct Pinned {
        before: CpuSet,
        /// Of one thread.
        _here: PhantomData<*const ()>,
    }

    impl Drop for Pinned {
        fn drop(&mut self) {
            // The set was the kernel's own answer. Should it say no, the thread stays where it is,
            // and slow at worst.
            let _ = sched_setaffinity(None, &self.before);
        }
    }

    /// Keeps the calling thread on one processor until what is returned is dropped.
    ///
    /// It is the `index`-th of those that this process may use, counted from the first again after
    /// the last. `None` where there is only one, or the system does not let us choose.
    pub fn pin(index: usize) -> Option<Pinned> {
        static PROCESSORS: OnceLock<Vec<usize>> = OnceLock::new();
        let before = sched_getaffinity(None).ok()?;
        // Asked before any thread is pinned, so that it is all of them.
        let processors = PROCESSORS.get_or_init(|| apart(&before, siblings));
        if processors.len() < 2 {
            return None;
        }
        let mut only = CpuSet::new();
        only.set(processors[index % processors.len()]);
        sched_setaffinity(None, &only).ok()?;
        Some(Pinned { before, _here: PhantomData })
    }

    /// Returns the processors of `set`: first one of each core, then those that share a core with
    /// one before them.
    fn apart(set: &CpuSet, siblings: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
        let mut taken = BTreeSet::new();
        let all = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
        let (first, rest): (Vec<_>, Vec<_>) = all.partition(|cpu| {
            let is_first = !taken.contains(cpu);
            taken.extend(siblings(*cpu));
            is_first
        });
        [first, rest].concat()
    }

    /// Returns the processors on the core of `cpu`; none where the system does not say.
    fn siblings(cpu: usize) -> Vec<usize> {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        fs::read_to_string(path).map_or_else(|_| Vec::new(), |list| ranges(list.trim()))
    }

    /// Returns the numbers of a list as the kernel writes it: `0-1,4`.
    fn ranges(list: &str) -> Vec<usize> {
        let range = |part: &str| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            Some(from.parse().ok()?..=to.parse().ok()?)
        };
        list.split(',').filter_map(range).flatten().collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn lists_of_the_kernel() {
            assert_eq!(ranges("0"), [0]);
            assert_eq!(ranges("0-2,5"), [0, 1, 2, 5]);
            assert!(ranges("").is_empty());
        }

        #[test]
        fn cores_come_before_their_second_threads() {
            let mut set = CpuSet::new();
            [0, 1, 2, 3, 6].into_iter().for_each(|cpu| set.set(cpu));
            assert_eq!(apart(&set, |cpu| vec![cpu ^ 1]), [0, 2, 6, 1, 3]);
            assert_eq!(apart(&set, |_| Vec::new()), [0, 1, 2, 3, 6]);
        }

        #[test]
        fn a_pinned_thread_is_let_go() {
            let before = sched_getaffinity(None).unwrap();
            let Some(pinned) = pin(1) else {
                assert!(before.count() < 2, "there is a choice, and it was not used");
                return;
            };
            assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
            drop(pinned);
            assert_eq!(sched_getaffinity(None).unwrap(), before);
        }
    }
}

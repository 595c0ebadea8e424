//! What programs do with any pool whose handles threads share: handles that come and go, buffers that are acquired and released on other
//! threads and in the midst of other calls, trims, pools beside it, and a keeper.

use std::mem;
use std::thread;
use std::time::Duration;

use bufcore::{BufferPool, SplitLease};
use bufkeeper::{Trim, Watch};
use testkit::bytes::Bytes;
use testkit::hostile::{Baggage, guarded};
use testkit::lockstep::Lockstep;

use crate::hostile::Others;
use crate::keeper::Keeping;

/// Handles that a program has at once.
const HANDLES: usize = 4;

pub(crate) struct Shared<P> {
    handle: fn(&P) -> Option<P>,
    handles: Vec<P>,
    pub(crate) baggage: Baggage,
    others: Others,
    keeping: Keeping,
}

impl<P: BufferPool<Lease: SplitLease> + Trim + Watch + Send + 'static> Shared<P> {
    /// `handle` makes another handle of a pool, if there are such.
    pub(crate) fn new(handle: fn(&P) -> Option<P>) -> Self {
        let (baggage, others) = (Baggage::default(), Others::default());
        let keeping = Keeping::new(baggage.clone());
        Self { handle, handles: Vec::new(), baggage, others, keeping }
    }

    /// One step.
    pub(crate) fn step(&mut self, lockstep: &mut Lockstep<P>, bytes: &mut Bytes<'_>) {
        let handle = self.handle;
        match bytes.below(16) {
            0 => {
                self.handles.extend(handle(lockstep.pool()));
                self.handles.truncate(HANDLES);
            }
            1 => drop(self.handles.pop().map(|handle| mem::replace(lockstep.pool(), handle))),
            2 => drop(self.handles.pop()),
            3..=4 => {
                let (size, Some(mut pool)) = (bytes.size(), handle(lockstep.pool())) else { return };
                let served = thread::spawn(move || guarded(|| pool.acquire(size)));
                match served.join().expect("no panic but on purpose") {
                    Some(Ok(buf)) => lockstep.admit(buf, size, Vec::new()),
                    Some(Err(error)) => assert!(size > 0, "{error}"),
                    None => {}
                }
            }
            5..=6 => {
                if let Some(live) = lockstep.take(bytes.below(256)) {
                    self.baggage.put(move || live.end());
                }
            }
            // On a thread whose caches go with it.
            7 => {
                let (baggage, pool) = (self.baggage.clone(), handle(lockstep.pool()));
                let errand = thread::spawn(move || {
                    guarded(|| drop(pool.map(|mut pool| pool.acquire(10))));
                    baggage.let_go();
                });
                errand.join().expect("dropping does not panic");
            }
            8 => lockstep.pool().trim(),
            9 => lockstep.pool().trim_idle(Duration::ZERO),
            10..=13 => self.keeping.step(bytes, lockstep.pool(), |pool| Some(Box::new(handle(pool)?))),
            _ => self.others.work(bytes.below(4)),
        }
    }

    /// Lets go of all handles, and of what was to be let go of.
    pub(crate) fn clear(&mut self) {
        self.baggage.clear();
        self.handles.clear();
    }

    /// Ends it, when the pool has ended.
    pub(crate) fn end(self) {
        self.keeping.end();
    }
}

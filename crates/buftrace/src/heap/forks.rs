//! Forks of a program that is recorded.
//!
//! A fork waits until no other thread writes to the log, so that what the child inherits is whole.
//! A signal's handler may fork as well, while it interrupts the recorder on its own thread. It
//! cannot wait for that thread, and such a child is not recorded.

use core::mem;
use core::sync::atomic::Ordering;

use super::local::{self, Local};
use super::recorder::{FORKED, MIN_BYTES, OFF, ON, STATE, shared};

impl Local {
    /// Keeps requests of a fork out of the recorder, and returns whether the fork is amid it: in a
    /// signal's handler that interrupts it.
    fn begin_fork(&self) -> bool {
        let is_amid = self.inside.replace(true);
        self.inside_before.set((self.inside_before.get() << 1) | u64::from(is_amid));
        is_amid
    }

    /// Returns whether the last fork that began is amid the recorder.
    fn is_fork_amid(&self) -> bool {
        self.inside_before.get() & 1 == 1
    }

    /// Undoes `begin_fork`.
    fn end_fork(&self) {
        self.inside.set(self.is_fork_amid());
        self.inside_before.set(self.inside_before.get() >> 1);
    }
}

/// Prepares for a fork; the system calls it in the parent.
pub(super) extern "C" fn before() {
    let is_amid = local::with(Local::begin_fork);
    // Amid the recorder, this thread may have the lock.
    if is_amid {
        return;
    }
    // The state that the child inherits is whole.
    let log = shared().and_then(|shared| shared.log.take_in_any_case());
    local::with(|local| local.forks.set(log.is_some()));
    mem::forget(log);
}

/// Continues after a fork; the system calls it in the parent.
pub(super) extern "C" fn after() {
    if let Some(shared) = shared()
        && local::with(|local| local.forks.replace(false))
    {
        // SAFETY: 1. `before` took it on this thread, and forgot that.
        unsafe { shared.log.break_open() };
    }
    local::with(Local::end_fork);
}

/// Prepares the child of a fork; the system calls it there.
pub(super) extern "C" fn in_child() {
    if local::with(Local::is_fork_amid) {
        leave_amid();
    } else {
        begin_in_child();
    }
    local::with(Local::end_fork);
}

/// Makes everything ready for a file of this process, which begins with the first event.
fn begin_in_child() {
    if let Some(shared) = shared() {
        // SAFETY: 1. This is the only thread of the process.
        unsafe { shared.log.break_open() };
        // SAFETY: 1. As above.
        unsafe { shared.table.break_open() };
        shared.table.clear();
        // ORDER: Relaxed: the process has one thread.
        FORKED.store(true, Ordering::Relaxed);
        if let Some(mut log) = shared.log.take() {
            log.leave();
        }
    }
    local::with(|local| {
        local.forks.set(false);
        // Of its own: parent and child draw other samples.
        local.seed.set(0);
    });
}

/// Ends the recording in a child that a signal's handler forked while it interrupted the recorder.
///
/// The interrupted code continues when the handler returns, and uses what it has locked. Locks of
/// other threads stay locked. So nothing is looked at here, and nothing is recorded any more.
fn leave_amid() {
    // ORDER: Relaxed, for all: the process has one thread, which sees its own stores.
    if STATE.compare_exchange(ON, OFF, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        MIN_BYTES.store(usize::MAX, Ordering::Relaxed);
    }
    // A recording that is being started goes to a file of this process.
    FORKED.store(true, Ordering::Relaxed);
}

//! The keeper as a thread.

use alloc::string::ToString;
use core::fmt;
use core::mem;
use std::io;
use std::process;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::calls::KeeperHandle;
use super::keeper::Keeper;
use super::trim::Watch;

/// The name of the thread: Linux shows 15 bytes of it.
const NAME: &str = "buffer-keeper";

impl Keeper {
    /// Starts a thread that trims the pools until the returned value is dropped.
    ///
    /// Between `fork` and `exec` a child process must not use a pool. The child has no such thread,
    /// and may exit.
    ///
    /// # Errors
    ///
    /// The system's error if it cannot start a thread.
    ///
    /// ```
    /// use bufkeeper::Keeper;
    ///
    /// let keeper = Keeper::new().spawn()?;
    /// // ... the program makes pools, and lets it watch them: keeper.watch(&pool);
    /// drop(keeper); // the thread ends; the pools are unchanged
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    pub fn spawn(self) -> io::Result<KeeperThread> {
        let handle = self.handle();
        let thread = thread::Builder::new().name(NAME.to_string()).spawn(move || self.keep())?;
        Ok(KeeperThread { handle, thread: Some(thread), process: process::id() })
    }

    /// Looks at the pools until the keeper is stopped, on its thread.
    #[inline]
    fn keep(mut self) {
        self.calls.is_this_thread();
        while !self.calls.is_stopped() {
            let next = self.pass(Instant::now(), true);
            while !self.calls.is_called() && !self.calls.is_stopped() {
                let left = next.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                thread::park_timeout(left);
            }
        }
    }
}

/// A [`Keeper`] that runs as a thread. Dropping it stops the thread, and waits for it: at most for
/// the trim of one pool.
///
/// ```
/// use std::sync::Arc;
/// # use bufcore::PoolStats;
/// # use bufkeeper::Trim;
/// use bufkeeper::Keeper;
/// # struct Pool;
/// # impl Trim for &Pool {
/// #     fn trim(&mut self) {}
/// #     fn stats(&self) -> Option<PoolStats> {
/// #         None
/// #     }
/// # }
///
/// let keeper = Keeper::new().spawn()?;
/// let pool = Arc::new(Pool); // any pool that implements `Watch`
/// keeper.watch(&pool);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "the thread ends when this is dropped"]
pub struct KeeperThread {
    handle: KeeperHandle,
    /// Taken by the drop alone.
    thread: Option<JoinHandle<()>>,
    /// The process that it is in.
    process: u32,
}

impl KeeperThread {
    /// Adds a pool to the keeper, which does not keep the pool alive.
    pub fn watch<P: Watch + ?Sized>(&self, pool: &P) {
        self.handle.watch(pool);
    }

    /// Returns a handle through which other threads add pools.
    #[inline]
    #[must_use]
    pub fn handle(&self) -> KeeperHandle {
        self.handle.clone()
    }
}

impl Drop for KeeperThread {
    #[inline]
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process != process::id() {
            // A forked child does not have the thread.
            return mem::forget(thread);
        }
        self.handle.calls.stop();
        // A pool's own code may drop it, on that thread: it ends by itself then.
        if thread.thread().id() != thread::current().id()
            && let Err(payload) = thread.join()
        {
            // A pool's drop panicked; so may that of what it left.
            mem::forget(payload);
        }
    }
}

impl fmt::Debug for KeeperThread {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeeperThread").finish_non_exhaustive()
    }
}

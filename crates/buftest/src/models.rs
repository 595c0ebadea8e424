//! What the loom models of the strategies share; only with `--cfg loom`.

use bufcore::{Buf, BufferPool, Lease};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// Stands for bytes, which loom does not see: written and read exactly where a user of the bytes would. A missing order between two users
/// shows as a race on it.
#[derive(Debug)]
pub struct Shadow(UnsafeCell<u32>);

// SAFETY: none needed but loom's own check, which is what the models are for.
unsafe impl Sync for Shadow {}
// SAFETY: likewise.
unsafe impl Send for Shadow {}

impl Default for Shadow {
    fn default() -> Self {
        Self(UnsafeCell::new(0))
    }
}

impl Shadow {
    /// One for several threads.
    #[must_use]
    pub fn shared() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Writes the bytes.
    pub fn write(&self) {
        // SAFETY: loom reports the race if another access is not ordered with this one.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }

    /// Reads the bytes: how often they were written.
    pub fn read(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|value| unsafe { *value })
    }
}

/// Acquires `bytes` bytes, and writes if the memory is the one that was at `address`.
pub fn acquire_again<P: BufferPool>(
    mut pool: P,
    bytes: usize,
    address: *const u8,
    shadow: &Shadow,
) -> Buf<P::Lease> {
    let again = pool.acquire(bytes).expect("the allocator has room");
    if again.as_ptr() == address {
        shadow.write();
    }
    again
}

/// The only view left of `buf` may be written to: what the other one read, it read before.
pub fn thaw_after_the_other_view_is_gone<L: Lease + 'static>(buf: Buf<L>) {
    let shadow = Shadow::shared();
    let view = buf.freeze();
    let other = view.clone();
    let reader = {
        let shadow = Arc::clone(&shadow);
        thread::spawn(move || {
            shadow.read();
            drop(other);
        })
    };
    thread::yield_now();
    if let Ok(buf) = view.try_thaw() {
        shadow.write();
        drop(buf);
    }
    reader.join().expect("the order is right");
}

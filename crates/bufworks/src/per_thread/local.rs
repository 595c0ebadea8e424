//! What a thread has: a pool of each handle that it has acquired from.
//!
//! # Invariants
//!
//! - L1: the entry whose `key` is the address of what handles of `P` share has a `Held<P>`: its
//!   `home` keeps the address from being another's.
//! - L2: while there is a handle, its entry stays, until the thread ends.

use alloc::rc::Rc;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::cell::{Cell, RefCell};

use bufcore::BufferPool;

use super::{Held, Shared};

/// The pool of a thread, of one handle.
struct Entry {
    /// The address of what the handles share.
    key: *const (),
    held: Rc<dyn Any>,
    home: Weak<dyn Any + Send + Sync>,
}

std::thread_local! {
    /// Borrowed for changes only where no code of others is called.
    static HELD: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
    /// Whether this thread looks at pools, whose statistics may be the user's code.
    static LOOKS: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn is_looking() -> bool {
    LOOKS.get()
}

/// Calls `look`, while which [`is_looking`] says so.
pub(super) fn looking<R>(look: impl FnOnce() -> R) -> R {
    struct Before(bool);

    impl Drop for Before {
        fn drop(&mut self) {
            LOOKS.set(self.0);
        }
    }

    let _before = Before(LOOKS.replace(true));
    look()
}

/// Returns what this thread has of `shared`, if it has something.
#[inline]
pub(super) fn find<P: BufferPool + Send + 'static>(shared: &Arc<Shared<P>>) -> Option<&Held<P>> {
    let key = Arc::as_ptr(shared).cast();
    let find = |entries: &RefCell<Vec<Entry>>| {
        let entries = entries.try_borrow().ok()?;
        let entry = entries.iter().find(|entry| entry.key == key)?;
        Some(Rc::as_ptr(&entry.held).cast::<Held<P>>())
    };
    let held = HELD.try_with(find).ok()??;
    // SAFETY:
    // - of this type (L1).
    // - it stays while the handle is borrowed (L2), on this thread, which does not end meanwhile:
    //   the reference is neither `Send` nor returned to users. Nothing refers to it exclusively.
    Some(unsafe { &*held })
}

/// Keeps what a thread has taken for its next request, unless it has one already, or ends. Drops
/// what it has of handles that are gone.
#[cold]
pub(super) fn keep<P: BufferPool + Send + 'static>(held: Held<P>) {
    let mut gone = Vec::new();
    let home = held.home.clone();
    let key = home.as_ptr().cast();
    let keep = |entries: &RefCell<Vec<Entry>>| {
        let Ok(mut entries) = entries.try_borrow_mut() else { return };
        if entries.iter().any(|entry| entry.key == key) {
            return;
        }
        let mut at = 0;
        while let Some(entry) = entries.get(at) {
            if entry.home.strong_count() == 0 {
                gone.push(entries.swap_remove(at));
            } else {
                at += 1;
            }
        }
        entries.push(Entry { key, held: Rc::new(held), home });
    };
    let _ = HELD.try_with(keep);
}

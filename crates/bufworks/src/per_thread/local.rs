//! What a thread has: a pool of each handle that it has acquired from.
//!
//! # Invariants
//!
//! - L1: the entry whose `key` is the address of what handles of `P` share has a `Held<P>`: its
//!   `home` keeps the address from being another's.
//! - L2: while there is a handle, its entry stays, until the thread ends.
//! - L3: `LAST` is of an entry that is there: it is cleared before one is taken out, and before the
//!   thread's variables end.

use alloc::rc::Rc;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::cell::{Cell, RefCell};
use core::{mem, ptr};

use bufcore::BufferPool;
use bufkit::thread_cache::process;

use super::{Held, Shared};

/// The pool of a thread, of one handle.
struct Entry {
    /// The address of what the handles share.
    key: *const (),
    held: Rc<dyn Any>,
    home: Weak<dyn Any + Send + Sync>,
}

struct Entries {
    /// In the order of their keys. Borrowed for changes only where no code of others is called.
    list: RefCell<Vec<Entry>>,
    /// The process that has made them.
    process: Cell<u32>,
}

impl Drop for Entries {
    fn drop(&mut self) {
        set_last(NONE);
        // In a forked child, what another thread of the parent had locked stays locked: the child
        // leaves all pools as they are, and ends.
        if self.process.get() != process() {
            mem::forget(self.list.take());
        }
    }
}

/// The key of an entry and the address of its `Held`.
type Found = (*const (), *const ());
const NONE: Found = (ptr::null(), ptr::null());

std::thread_local! {
    static HELD: Entries = const { Entries { list: RefCell::new(Vec::new()), process: Cell::new(0) } };
    /// The entry that was found last (L3).
    static LAST: Cell<Found> = const { Cell::new(NONE) };
    /// Whether this thread looks at pools, whose statistics may be the user's code.
    static LOOKS: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn is_looking() -> bool {
    LOOKS.try_with(Cell::get).unwrap_or(false)
}

fn set_looking(looks: bool) -> bool {
    LOOKS.try_with(|looking| looking.replace(looks)).unwrap_or(false)
}

fn set_last(found: Found) {
    let _ = LAST.try_with(|last| last.set(found));
}

/// Calls `look`, while which [`is_looking`] says so.
pub(super) fn looking<R>(look: impl FnOnce() -> R) -> R {
    struct Before(bool);

    impl Drop for Before {
        fn drop(&mut self) {
            set_looking(self.0);
        }
    }

    let _before = Before(set_looking(true));
    look()
}

/// Returns what this thread has of `shared`, if it has something.
#[inline]
pub(super) fn find<P: BufferPool + Send + 'static>(shared: &Arc<Shared<P>>) -> Option<&Held<P>> {
    let key = Arc::as_ptr(shared).cast();
    let (last, mut held) = LAST.try_with(Cell::get).unwrap_or(NONE);
    if last != key {
        held = search(key)?;
    }
    // SAFETY:
    // - of this type (L1), and there (L3).
    // - it stays while the handle is borrowed (L2), on this thread, which does not end meanwhile:
    //   the reference is neither `Send` nor returned to users. Nothing refers to it exclusively.
    Some(unsafe { &*held.cast::<Held<P>>() })
}

/// Returns where the entry with that key is, or would be. Calls `looked` for each that it looks at.
fn place(entries: &[Entry], key: *const (), mut looked: impl FnMut()) -> Result<usize, usize> {
    entries.binary_search_by(|entry| {
        looked();
        entry.key.cmp(&key)
    })
}

#[inline(never)]
fn search(key: *const ()) -> Option<*const ()> {
    let find = |entries: &Entries| {
        let entries = entries.list.try_borrow().ok()?;
        let at = place(&entries, key, || ()).ok()?;
        let held = Rc::as_ptr(&entries[at].held).cast();
        set_last((key, held));
        Some(held)
    };
    HELD.try_with(find).ok()?
}

/// Keeps what a thread has taken for its next request, unless it has one already, or ends. Drops
/// what it has of handles that are gone.
#[cold]
pub(super) fn keep<P: BufferPool + Send + 'static>(held: Held<P>) {
    let mut gone = Vec::new();
    let home = held.home.clone();
    let key = home.as_ptr().cast();
    let keep = |Entries { list, process: made_by }: &Entries| {
        let Ok(mut entries) = list.try_borrow_mut() else { return };
        if place(&entries, key, || ()).is_ok() {
            return;
        }
        set_last(NONE);
        made_by.set(process());
        gone.extend(entries.extract_if(.., |entry| entry.home.strong_count() == 0));
        let Err(at) = place(&entries, key, || ()) else { return };
        entries.insert(at, Entry { key, held: Rc::new(held), home });
    };
    let _ = HELD.try_with(keep);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 4096 handles that a thread uses, each is found by a look at few others (T26).
    #[test]
    fn t26_searches_are_short() {
        let key = |n| ptr::without_provenance(64 * n);
        let entry = |n| Entry { key: key(n), held: Rc::new(()), home: Weak::<()>::new() };
        let entries: Vec<_> = (0..4096).map(entry).collect();
        for n in 0..4096 {
            let mut looks = 0;
            assert_eq!(place(&entries, key(n), || looks += 1), Ok(n));
            assert!(looks <= 13, "{looks}");
        }
    }
}

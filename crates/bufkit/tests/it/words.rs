//! What handles and lists print of themselves, and locks.

use std::ptr::NonNull;

use bufkit::{CoreRef, Handle, Link, PoolCore, RefCounts, Registry, RegistryEntry};

/// An entry of a roll.
struct Entry(Link<Self>);

// SAFETY: the link is the entry's own and the same at each call.
unsafe impl RegistryEntry for Entry {
    fn link(&self) -> &Link<Self> {
        &self.0
    }
}

#[test]
fn lists_print_nothing_of_their_entries() {
    let roll = Registry::default();
    let entry = roll.add(|| Entry(Link::default())).expect("the heap has room");
    assert_eq!(format!("{roll:?} {:?}", entry.0), "Registry { .. } Link { .. }");
}

/// The bookkeeping of a pool that has none.
struct Books(RefCounts);

// SAFETY: the counts are made with the value, and nobody else reaches them.
unsafe impl PoolCore for Books {
    fn ref_counts(&self) -> &RefCounts {
        &self.0
    }

    unsafe fn close(_: NonNull<Self>) {}
}

/// Not what they keep, which may be anybody's.
#[test]
fn handles_and_references_print_no_bookkeeping() {
    let handle = Handle::new(Books(RefCounts::one_handle())).expect("the heap has room");
    // SAFETY: of this handle, which keeps the bookkeeping.
    let refs = unsafe { CoreRef::add(handle.as_ptr()) };
    assert_eq!(format!("{handle:?} {refs:?}"), "Handle { .. } CoreRef { count: 1, .. }");
    drop(handle);
    assert_eq!(format!("{refs:?}"), "CoreRef { count: 1, .. }");
}

/// A thread that panics under a lock takes nothing from the others.
#[test]
fn locks_are_never_poisoned() {
    use bufkit::sync::{Mutex, lock, try_lock};
    let mutex = Mutex::new(1);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        *lock(&mutex) = 2;
        let _locked = lock(&mutex);
        panic!("told to panic");
    }));
    assert!(unwound.is_err() && mutex.is_poisoned());
    assert_eq!(*lock(&mutex), 2);
    let locked = lock(&mutex);
    assert!(try_lock(&mutex).is_none());
    drop(locked);
}

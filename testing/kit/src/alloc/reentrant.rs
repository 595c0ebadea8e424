//! An allocator whose calls come back into the program.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::io::Write;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// What freed memory is overwritten with.
const POISON: u8 = 0xDD;
/// Blocks that are held back at once. More than one run of a program frees.
const HELD_BACK: usize = 1 << 14;
/// Bytes of a block that are looked at when it goes for good.
const LOOKED_AT: usize = 4096;

type Action = *mut dyn FnMut();

thread_local! {
    /// What to do within one of the coming calls of this thread.
    static ACTION: Cell<Option<Action>> = const { Cell::new(None) };
    /// Calls of this thread before that one.
    static BEFORE: Cell<usize> = const { Cell::new(0) };
    /// Calls of this thread since it was armed, without those of the action.
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, in whose n-th call of this thread, of those that take memory and of
/// those that give it back, a program of one's own runs: it may use pools, and end them.
///
/// Freed memory is overwritten, and held back for a while. It is looked at when it goes: a write
/// after the free ends the process with a message, and a read after it finds nonsense.
#[derive(Debug)]
pub struct Reentrant {
    back: UnsafeCell<Back>,
    lock: AtomicBool,
}

/// Blocks that are held back.
#[derive(Debug)]
struct Back {
    blocks: [(*mut u8, Layout); HELD_BACK],
    next: usize,
}

// SAFETY: `back` is used with the lock held.
unsafe impl Sync for Reentrant {}

impl Default for Reentrant {
    fn default() -> Self {
        Self::new()
    }
}

impl Reentrant {
    /// Makes an allocator with nothing armed.
    pub const fn new() -> Self {
        let none = (ptr::null_mut(), Layout::new::<u8>());
        Self {
            back: UnsafeCell::new(Back { blocks: [none; HELD_BACK], next: 0 }),
            lock: AtomicBool::new(false),
        }
    }

    /// Runs `body`, and `action` within the call of the allocator that comes after `before` others
    /// of this thread. Returns how many calls there were without those of the action.
    ///
    /// Neither may panic: an allocator must not.
    pub fn within(before: usize, mut action: impl FnMut(), body: impl FnOnce()) -> usize {
        let action: *mut dyn FnMut() = &raw mut action;
        // SAFETY: only the lifetime changes; it is taken back below, before the action goes.
        let action: Action = unsafe { std::mem::transmute::<*mut dyn FnMut(), Action>(action) };
        CALLS.set(0);
        BEFORE.set(before);
        ACTION.set(Some(action));
        body();
        ACTION.set(None);
        CALLS.get()
    }

    fn call() {
        // A thread's variables may be gone.
        let Ok(Some(action)) = ACTION.try_with(Cell::get) else {
            // With the action done, calls still count.
            return;
        };
        CALLS.set(CALLS.get() + 1);
        if let Some(before) = BEFORE.get().checked_sub(1) {
            BEFORE.set(before);
            return;
        }
        BEFORE.set(usize::MAX);
        // Its own calls are nobody's.
        ACTION.set(None);
        // SAFETY: `within` has not returned, and the action runs once at a time.
        unsafe { (*action)() };
        ACTION.set(Some(action));
    }

    /// Holds a block back, and frees the one whose turn it is.
    fn hold_back(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller gives the block up.
        unsafe { block.write_bytes(POISON, layout.size()) };
        // ORDER: Acquire pairs with the Release of whoever had the lock before: what it wrote to
        // the blocks is seen.
        while self.lock.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        // SAFETY: the lock is held.
        let back = unsafe { &mut *self.back.get() };
        let at = back.next % HELD_BACK;
        back.next = at + 1;
        let (oldest, its) = std::mem::replace(&mut back.blocks[at], (block, layout));
        // ORDER: Release pairs with the Acquire of the next who takes the lock.
        self.lock.store(false, Ordering::Release);
        Self::let_go(oldest, its);
    }

    fn let_go(block: *mut u8, layout: Layout) {
        if block.is_null() {
            return;
        }
        // SAFETY: held back, with this layout, and written all over.
        let bytes = unsafe { std::slice::from_raw_parts(block, layout.size().min(LOOKED_AT)) };
        if let Some(at) = bytes.iter().position(|&byte| byte != POISON) {
            // No allocation here: the text goes out in pieces.
            let _ =
                writeln!(std::io::stderr(), "reentrant: byte {at} of {layout:?} was written after its free");
            process::abort();
        }
        // SAFETY: taken with this layout, and given back once.
        unsafe { System.dealloc(block, layout) };
    }

    /// Looks at all that is held back, and frees it.
    pub fn check(&self) {
        for at in 0..HELD_BACK {
            // ORDER: Acquire pairs with the Release of whoever had the lock before: what it wrote
            // to the blocks is seen.
            while self.lock.swap(true, Ordering::Acquire) {
                std::hint::spin_loop();
            }
            // SAFETY: the lock is held.
            let back = unsafe { &mut *self.back.get() };
            let (block, layout) =
                std::mem::replace(&mut back.blocks[at], (ptr::null_mut(), Layout::new::<u8>()));
            // ORDER: Release pairs with the Acquire of the next who takes the lock.
            self.lock.store(false, Ordering::Release);
            Self::let_go(block, layout);
        }
    }
}

// SAFETY: memory is the system's; a block that is given back is freed later, once.
unsafe impl GlobalAlloc for Reentrant {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::call();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::call();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        Self::call();
        self.hold_back(block, layout);
    }
}

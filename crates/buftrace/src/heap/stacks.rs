//! Call stacks: how they are taken, and which were seen before.

use core::ffi::{c_int, c_void};
use core::ptr;

use crate::profile::format::MAX_FRAMES;

/// Places for stacks. A quarter stays free, so that looking for one ends soon.
const SLOTS: usize = 1 << 16;
const MAX_STACKS: u32 = (SLOTS / 4 * 3) as u32;

/// Frames of the recorder itself: that of `capture`, and that of its caller.
const OWN_FRAMES: usize = 2;

/// The return addresses of a call stack, innermost first.
pub(super) struct Stack {
    addresses: [u64; MAX_FRAMES],
    frames: usize,
    /// How many are wanted.
    depth: usize,
    /// How many of the recorder's own frames are still to be left out.
    skip: usize,
}

impl Stack {
    /// Makes an empty one for at most `depth` frames. It is never moved: the thread may have little
    /// stack.
    #[inline(always)]
    pub(super) fn new(depth: usize) -> Self {
        Self { addresses: [0; MAX_FRAMES], frames: 0, depth: depth.min(MAX_FRAMES), skip: OWN_FRAMES }
    }

    pub(super) fn addresses(&self) -> &[u64] {
        self.addresses.get(..self.frames).unwrap_or_default()
    }

    fn hash(&self) -> u64 {
        let mix = |hash: u64, address: &u64| {
            let mixed = (hash ^ address).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ (mixed >> 29)
        };
        // A place of 0 is an empty one.
        self.addresses().iter().fold(0x1234_5678_9abc_def1, mix).max(1)
    }
}

// The unwinder that is in every program of Rust on this system: that of panics. It takes no lock of
// the C library where that has `_dl_find_object` (glibc 2.35), and allocates nothing.
unsafe extern "C-unwind" {
    fn _Unwind_Backtrace(
        step: extern "C-unwind" fn(*mut c_void, *mut c_void) -> c_int,
        to: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

const GO_ON: c_int = 0;
const END: c_int = 5;

/// Takes the stack of the caller's caller into an empty one.
#[inline(never)]
pub(super) fn capture(stack: &mut Stack) {
    if stack.depth > 0 {
        // SAFETY: `step` takes what is passed on to it as a `Stack`, and this one outlives the
        // call.
        unsafe { _Unwind_Backtrace(step, ptr::from_mut(stack).cast()) };
    }
}

extern "C-unwind" fn step(context: *mut c_void, stack: *mut c_void) -> c_int {
    // SAFETY: called by the unwinder alone, with what `capture` gave it: a stack that nobody else
    // uses at the moment.
    let stack = unsafe { &mut *stack.cast::<Stack>() };
    // SAFETY: the context is that of this call.
    let address = unsafe { _Unwind_GetIP(context) };
    if address == 0 {
        return END;
    }
    if stack.skip > 0 {
        stack.skip -= 1;
        return GO_ON;
    }
    if let Some(place) = stack.addresses.get_mut(stack.frames) {
        *place = address as u64;
        stack.frames += 1;
    }
    if stack.frames < stack.depth { GO_ON } else { END }
}

/// The stacks that are in the file. All fields begin as zeros.
pub(super) struct Stacks {
    /// The hash of a stack, and its number.
    slots: [(u64, u32); SLOTS],
    used: u32,
}

/// A stack, as the file knows it.
pub(super) enum Known {
    /// It has this number.
    Old(u32),
    /// It has this number from now on, and is not in the file yet.
    New(u32),
    /// There is no place for more.
    Full,
}

impl Stacks {
    /// Looks for a stack. Two of the same hash are taken for one: among a thousand million million
    /// pairs there is less than one.
    pub(super) fn find(&mut self, stack: &Stack) -> Known {
        if stack.frames == 0 {
            return Known::Old(0);
        }
        let hash = stack.hash();
        let mut at = hash as usize % SLOTS;
        while let Some((found, number)) = self.slots.get_mut(at) {
            if *found == hash {
                return Known::Old(*number);
            }
            if *found == 0 {
                if self.used == MAX_STACKS {
                    return Known::Full;
                }
                self.used += 1;
                (*found, *number) = (hash, self.used);
                return Known::New(self.used);
            }
            at = (at + 1) % SLOTS;
        }
        Known::Full
    }

    pub(super) fn clear(&mut self) {
        self.forget();
        self.used = 0;
    }

    /// Forgets which stacks are in the file: the same addresses mean other code from now on.
    pub(super) fn forget(&mut self) {
        if self.used > 0 {
            self.slots.fill((0, 0));
        }
    }
}

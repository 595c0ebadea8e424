//! Memory of a program's own, lent to regions by a source that does what it may. It refuses, now or
//! later, lends what is full of old bytes, and panics when it lends or takes back.

#![allow(clippy::disallowed_methods, reason = "a source of memory allocates")]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bufcore::{MemoryProvider, Provided, RegionError};

/// A call of a [`Lender`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// It is asked for memory.
    Supply,
    /// It has taken memory back, which is freed by now.
    TakeBack,
}

/// What a [`Lender`] answers to [`Ask::Supply`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loan {
    /// Memory that is full of ones.
    Old,
    /// Memory that is zeroed, and is said to be.
    Zeroed,
    /// Nothing: there is none left.
    OutOfMemory,
    /// Nothing: a call of the system's failed.
    Refused,
}

/// Addresses, and layouts.
type Ledger = Vec<(usize, Layout)>;

/// A source that asks a script what to do at each call. The script may panic, and use anything.
pub struct Lender {
    script: Box<dyn Fn(Ask) -> Loan + Send + Sync>,
    /// What is out.
    out: Mutex<Ledger>,
    /// What was ever lent.
    lent: Mutex<Ledger>,
}

impl Lender {
    /// Makes a source that does what `script` says. What it says to [`Ask::TakeBack`] is ignored.
    pub fn new(script: impl Fn(Ask) -> Loan + Send + Sync + 'static) -> Self {
        Self { script: Box::new(script), out: Mutex::default(), lent: Mutex::default() }
    }

    /// Returns how many pieces of memory are out.
    pub fn out(&self) -> usize {
        locked(&self.out).len()
    }

    /// Returns whether these bytes are in memory that it has lent, perhaps before it took that
    /// back.
    pub fn has_lent(&self, start: *const u8, len: usize) -> bool {
        locked(&self.lent).iter().any(|(from, layout)| {
            (*from..from + layout.size()).contains(&start.addr())
                && start.addr() + len <= from + layout.size()
        })
    }

    /// Returns the layouts of all that it has lent.
    pub fn layouts(&self) -> Vec<Layout> {
        locked(&self.lent).iter().map(|(_, layout)| *layout).collect()
    }
}

fn locked(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

// SAFETY: what the allocator returns is valid until it is freed, for nobody else, and stays where
// it is. Memory that is said to be zeroed was zeroed here.
unsafe impl MemoryProvider for Lender {
    fn allocate(&self, layout: Layout) -> Result<Provided, RegionError> {
        let byte = match (self.script)(Ask::Supply) {
            Loan::Old => 0xFF,
            Loan::Zeroed => 0,
            Loan::OutOfMemory => return Err(RegionError::OutOfMemory { requested: layout.size() }),
            Loan::Refused => return Err(RegionError::Refused { call: "ioctl", errno: 12 }),
        };
        // SAFETY: a region has at least one byte.
        let start = NonNull::new(unsafe { alloc(layout) })
            .ok_or(RegionError::OutOfMemory { requested: layout.size() })?;
        // SAFETY: just allocated, as many bytes.
        unsafe { start.write_bytes(byte, layout.size()) };
        for ledger in [&self.out, &self.lent] {
            locked(ledger).push((start.addr().get(), layout));
        }
        Ok(Provided { start, is_zeroed: byte == 0 })
    }

    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        let at = {
            let mut out = locked(&self.out);
            let at = out.iter().position(|&entry| entry == (start.addr().get(), layout));
            at.map(|at| out.swap_remove(at))
        };
        assert!(at.is_some(), "memory that is not out, or of another layout, is given back");
        // SAFETY: from `allocate`, with this layout, and given back once, as was just seen.
        unsafe { dealloc(start.as_ptr(), layout) };
        (self.script)(Ask::TakeBack);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::Arc;

    use bufcore::{Region, RegionError};

    use super::{Ask, Lender, Loan};

    #[test]
    fn it_lends_refuses_and_panics() {
        let region = |loan| {
            let lender = Arc::new(Lender::new(move |_| loan));
            (Region::from_provider(Arc::clone(&lender), 100, 64).map(drop), lender.out())
        };
        assert_eq!(region(Loan::Old), (Ok(()), 0));
        assert_eq!(region(Loan::Zeroed), (Ok(()), 0));
        assert_eq!(region(Loan::OutOfMemory), (Err(RegionError::OutOfMemory { requested: 100 }), 0));
        assert_eq!(region(Loan::Refused), (Err(RegionError::Refused { call: "ioctl", errno: 12 }), 0));
        let lender = Arc::new(Lender::new(|ask| match ask {
            Ask::Supply => Loan::Old,
            Ask::TakeBack => resume_unwind(Box::new("on purpose")),
        }));
        let region = Region::from_provider(Arc::clone(&lender), 100, 64).expect("it lends");
        assert_eq!(lender.out(), 1);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(region))).is_err());
        assert_eq!((lender.out(), Arc::strong_count(&lender)), (0, 1));
    }
}

/// The global allocator.
#[derive(Debug)]
pub struct FromAllocator;

// SAFETY: what the allocator returns is valid until it is freed, for nobody else, and stays.
unsafe impl MemoryProvider for FromAllocator {
    fn allocate(&self, layout: Layout) -> Result<Provided, RegionError> {
        // SAFETY: the layout is not of zero size, as no region is.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })
            .ok_or(RegionError::OutOfMemory { requested: layout.size() })?;
        Ok(Provided { start, is_zeroed: true })
    }

    unsafe fn deallocate(&self, start: NonNull<u8>, layout: Layout) {
        // SAFETY: from `allocate`, with this layout, and given back once.
        unsafe { dealloc(start.as_ptr(), layout) };
    }
}

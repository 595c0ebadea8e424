//! The naive oracle: which addresses are taken, and which bytes each live handle must hold.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Whether the maps are switched off.
static OFF: AtomicBool = AtomicBool::new(false);

/// A shadow map of live address ranges: two that overlap are a test failure.
#[derive(Debug, Default)]
pub struct Shadow {
    /// Start to end, end exclusive.
    ranges: Mutex<BTreeMap<usize, usize>>,
}

impl Shadow {
    /// Makes a map with nothing taken.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Switches off all maps of this process, for ThreadSanitizer. The map's lock would order what
    /// a pool has to order, and so hide that it does not. The locks of a precompiled standard
    /// library give false reports, too.
    pub fn switch_off() {
        // ORDER: Relaxed: called before there are threads.
        OFF.store(true, Relaxed);
    }

    /// Returns whether they are off: this is a program for a sanitizer, then.
    pub fn is_off() -> bool {
        // ORDER: Relaxed, as in `switch_off`.
        OFF.load(Relaxed)
    }

    /// Notes `start .. start + len` as taken until the claim is dropped, which has to be before the
    /// memory is given back.
    ///
    /// # Panics
    ///
    /// When any of it is taken already.
    #[track_caller]
    pub fn claim(self: &Arc<Self>, start: *const u8, len: usize) -> Claim {
        let start = start.addr();
        if len == 0 || Self::is_off() {
            return Claim { shadow: None, start };
        }
        let end = start.checked_add(len).expect("the range ends in the address space");
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        let before = ranges.range(..end).next_back().map(|(&from, &to)| (from, to));
        if let Some((from, to)) = before
            && to > start
        {
            drop(ranges);
            panic!("{start:#x}..{end:#x} was handed out while {from:#x}..{to:#x} is live");
        }
        ranges.insert(start, end);
        Claim { shadow: Some(Arc::clone(self)), start }
    }

    /// Counts the bytes of all live ranges.
    pub fn bytes(&self) -> usize {
        let ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        ranges.iter().map(|(start, end)| end - start).sum()
    }

    /// Counts the live ranges.
    pub fn live(&self) -> usize {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// One live range of a [`Shadow`]. Forgetting it marks the range as taken for ever.
#[derive(Debug)]
pub struct Claim {
    /// `None` for a range of no bytes, and when maps are switched off.
    shadow: Option<Arc<Shadow>>,
    start: usize,
}

impl Claim {
    /// Makes a claim of no bytes.
    pub fn nothing() -> Self {
        Self { shadow: None, start: 0 }
    }

    /// Returns whether it is of no bytes.
    pub fn is_empty(&self) -> bool {
        self.shadow.is_none()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(shadow) = &self.shadow {
            shadow.ranges.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.start);
        }
    }
}

/// What one handle, a buffer or a view, must look like.
#[derive(Debug, Clone)]
pub struct Expected {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How many bytes it can hold, for a buffer; how many it could hold if it were thawed, for a
    /// view.
    pub capacity: usize,
    /// The memory that it is in: views of one buffer share it.
    pub memory: Arc<Claim>,
}

impl Expected {
    /// Drops the first `n` bytes, as `consume` does.
    pub fn consume(&mut self, n: usize) {
        self.bytes.drain(..n);
        self.capacity -= n;
    }

    /// Lets go of the memory, as a view without bytes does.
    pub fn let_go(&mut self) {
        *self = Self { bytes: Vec::new(), capacity: 0, memory: Arc::new(Claim::nothing()) };
    }

    /// Makes the view `from .. to` of this view; without bytes it has no share in the memory.
    pub fn view(&self, from: usize, to: usize) -> Self {
        let mut view = self.slice(from, to);
        if from == to {
            view.let_go();
        }
        view
    }

    /// Splits a view as its `split_to` does, and returns the front.
    pub fn split_view_to(&mut self, index: usize) -> Self {
        let front = self.view(0, index);
        self.consume(index);
        if index > 0 && self.bytes.is_empty() {
            self.let_go();
        }
        front
    }

    /// Splits a view as its `split_off` does, and returns the back.
    pub fn split_view_off(&mut self, index: usize) -> Self {
        let back = self.view(index, self.bytes.len());
        self.bytes.truncate(index);
        if index == 0 && !back.bytes.is_empty() {
            self.let_go();
        }
        back
    }

    /// Makes the part `from .. to` of what is filled, with the memory behind it.
    pub fn slice(&self, from: usize, to: usize) -> Self {
        Self {
            bytes: self.bytes[from..to].to_vec(),
            capacity: self.capacity - from,
            memory: Arc::clone(&self.memory),
        }
    }

    /// Returns whether no other view shares the memory.
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.memory) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_fine_and_a_claim_ends() {
        let shadow = Shadow::new();
        let memory = [0u8; 30];
        let first = shadow.claim(&raw const memory[0], 10);
        let second = shadow.claim(&raw const memory[10], 10);
        drop(first);
        let third = shadow.claim(&raw const memory[0], 10);
        assert_eq!(shadow.live(), 2);
        drop((second, third));
        assert_eq!(shadow.live(), 0);
    }

    #[test]
    fn every_overlap_is_seen() {
        let memory = [0u8; 40];
        for start in 0..30 {
            for len in 1..10 {
                let shadow = Shadow::new();
                let _taken = shadow.claim(&raw const memory[10], 10);
                let claimed = std::panic::catch_unwind(|| {
                    std::mem::forget(shadow.claim(&raw const memory[start], len))
                });
                assert_eq!(claimed.is_err(), start < 20 && start + len > 10, "{start} + {len}");
            }
        }
    }
}

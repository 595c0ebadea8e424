//! The entries of those in a wait queue: who they are, in which order, and what each needs.

use alloc::collections::VecDeque;
use core::time::Duration;
use std::time::Instant;

use bufkit::Waiter;

/// How long somebody waits for room and lets others overtake who need less. Several time slices:
/// where there are more threads than processors, to wait for a few milliseconds is nothing special,
/// and a queue that all have to stand in costs two switches of threads for each message.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// Who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A thread: it continues soon when it was woken.
    Thread,
    /// A task: it may not be polled.
    Task,
}

impl Kind {
    /// Returns whether a waiter of this kind counts as one that spins when it was woken.
    pub(super) fn spins_when_woken(self) -> bool {
        self == Self::Thread
    }
}

/// One that sleeps.
pub(super) struct WaitEntry {
    pub(super) number: u64,
    pub(super) sleeper: Waiter,
    pub(super) need: usize,
    pub(super) kind: Kind,
    /// Since when it waits, if it does not let others pass for ever, and has nobody to say so.
    pub(super) since: Option<Instant>,
}

/// The task that others go behind (L4).
pub(super) struct Reservation {
    pub(super) number: u64,
    pub(super) need: usize,
    /// When it was woken, if it was and has not been polled since.
    pub(super) woken: Option<Instant>,
}

#[derive(Default)]
pub(super) struct WaitEntries {
    pub(super) entries: VecDeque<WaitEntry>,
    /// Threads among them.
    pub(super) threads: usize,
    pub(super) next: u64,
    pub(super) reservation: Option<Reservation>,
    /// What tasks need that were woken, and neither polled nor dropped since (L2).
    pub(super) promised: usize,
}

impl WaitEntries {
    /// Returns how much only the task that has it reserved and was woken for it may take.
    pub(super) fn reserved(&self) -> usize {
        match &self.reservation {
            Some(Reservation { woken: Some(woken), need, .. }) if woken.elapsed() < PATIENCE => *need,
            _ => 0,
        }
    }

    /// Notes that a task to which this was promised was polled, or dropped.
    pub(super) fn keep_promise(&mut self, need: usize) {
        // It may have ended before.
        self.promised = self.promised.saturating_sub(need);
    }

    /// Takes an entry off, and notes that its owner is woken.
    pub(super) fn call(&mut self, place: usize) -> Option<WaitEntry> {
        let entry = self.entries.remove(place)?;
        self.threads -= usize::from(entry.kind == Kind::Thread);
        if let Some(reservation) = self.reservation.as_mut().filter(|it| it.number == entry.number) {
            reservation.woken = Some(Instant::now());
        }
        Some(entry)
    }
}

/// How somebody stands who is not asleep.
#[derive(Clone, Copy, Default)]
pub(super) struct Standing {
    /// Is counted as one that spins.
    pub(super) spinning: bool,
    /// Was first in the queue already.
    pub(super) has_slept: bool,
}

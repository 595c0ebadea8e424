//! The tickets of waiting requests, in order, and which of them is called (`wait_queue`).

use alloc::collections::VecDeque;
use core::mem;
use core::time::Duration;
use std::time::Instant;

use bufkit::Waiter;

use super::batch::Batch;

/// How long one who was called may take to look before he is taken for gone.
pub(crate) const PATIENCE: Duration =
    if cfg!(any(loom, shuttle)) { Duration::MAX } else { Duration::from_secs(1) };
/// How long those behind wait for one who was overtaken often.
const TURN: Duration = Duration::from_millis(100);
/// From how many calls in vain on that is.
const OFTEN: u32 = 16;
/// How many are called at once of those who answered before.
const BACKUPS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 4 };

/// What happened to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Some was freed, or somebody asks.
    Freed,
    /// Some became idle where those who wait may have looked already.
    Put,
    /// The request of this number was refused, and gave back what it had for a part of it.
    Returned(u64),
}

/// What one who waits is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// It is another's turn.
    Wait,
    /// It is that of another who was overtaken often, and was just called.
    Soon,
    /// It is its turn; `all` says that there may be idle memory which it has not seen.
    Take { all: bool },
}

/// One that waits.
pub(crate) struct Ticket {
    number: u64,
    /// The least that its memory takes of the budget.
    need: usize,
    state: State,
    /// When it joined the queue.
    joined: Instant,
    /// When it last looked, or was called.
    since: Instant,
    /// `Queue::puts` when it last looked everywhere.
    puts: Option<u64>,
    /// How often it was called.
    calls: u32,
    /// Whether it answered its last call.
    is_known: bool,
    /// Whether some was freed since it last looked, and not enough while it had a part.
    is_passed: bool,
}

enum State {
    Asleep(Waiter),
    Called,
    /// No ticket any more; what is in front or behind is not moved for it.
    Closed,
}

/// All who wait for the budget of a pool.
pub(crate) struct Queue {
    /// By number.
    tickets: VecDeque<Ticket>,
    /// The number of the next ticket. Where a child begins with a queue of its own, it is none that
    /// a future has from before.
    next: u64,
    /// Those of `tickets` that are gone.
    gone: usize,
    /// No ticket with a lower number is asleep.
    asleep_from: u64,
    /// How often memory became idle.
    puts: u64,
    /// When to look for those who were called and did not look; none was called before that less
    /// `PATIENCE`.
    deadline: Option<Instant>,
    /// Whom those behind wait for, and since when.
    overtaken: Option<(u64, Instant)>,
}

impl Default for Queue {
    fn default() -> Self {
        let next = u64::from(std::process::id()) << 32;
        let tickets = VecDeque::new();
        Self { tickets, next, gone: 0, asleep_from: 0, puts: 0, deadline: None, overtaken: None }
    }
}

impl State {
    /// Returns the sleeper to wake, if the waiter is asleep.
    fn into_sleeper(self) -> Option<Waiter> {
        match self {
            Self::Asleep(sleeper) => Some(sleeper),
            Self::Called | Self::Closed => None,
        }
    }
}

impl Ticket {
    /// Returns whether it is long ago that the waiter looked, or was called.
    fn is_late(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) > PATIENCE
    }
}

impl Queue {
    /// Counts the waiters that are not gone.
    pub(crate) fn live(&self) -> usize {
        self.tickets.len() - self.gone
    }

    /// Returns how long the first has been in the queue, if one is that is not taken for gone.
    pub(crate) fn longest_wait(&self, now: Instant) -> Option<Duration> {
        let is_live = |ticket: &&Ticket| match ticket.state {
            State::Asleep(_) => true,
            State::Called => !ticket.is_late(now),
            State::Closed => false,
        };
        self.tickets.iter().find(is_live).map(|first| now.saturating_duration_since(first.joined))
    }

    /// Returns the index of a ticket, or as the error the index that it would have.
    fn place(&self, number: u64) -> Result<usize, usize> {
        let at = self.tickets.partition_point(|ticket| ticket.number < number);
        match self.tickets.get(at) {
            Some(ticket) if ticket.number == number && !matches!(ticket.state, State::Closed) => Ok(at),
            _ => Err(at),
        }
    }

    /// Returns the index of the first waiter that is asleep.
    fn first_asleep(&mut self) -> Option<usize> {
        let from = self.tickets.partition_point(|ticket| ticket.number < self.asleep_from);
        let is_asleep = |at: &usize| matches!(self.tickets[*at].state, State::Asleep(_));
        let first = (from..self.tickets.len()).find(is_asleep);
        self.asleep_from = first.map_or(self.next, |at| self.tickets[at].number);
        first
    }

    /// Takes out those who were called and did not look for long.
    pub(crate) fn tidy(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.deadline = None;
        for at in 0..self.tickets.len() {
            let ticket = &mut self.tickets[at];
            if !matches!(ticket.state, State::Called) {
                continue;
            }
            if ticket.is_late(now) {
                ticket.state = State::Closed;
                self.gone += 1;
            } else {
                let since = ticket.since;
                self.look_after(since);
            }
        }
        self.compact();
    }

    /// Notes that a waiter was called at the time `since`.
    fn look_after(&mut self, since: Instant) {
        if let Some(end) = since.checked_add(PATIENCE) {
            self.deadline = Some(self.deadline.map_or(end, |deadline| deadline.min(end)));
        }
    }

    /// Notes that memory became idle.
    pub(crate) fn note_put(&mut self) {
        self.puts += 1;
    }

    /// Notes that a ticket could not look everywhere. It looks again soon; if it is not its turn
    /// then, it is to be called.
    pub(crate) fn note_unseen(&mut self, number: u64) {
        if let Ok(at) = self.place(number) {
            self.tickets[at].puts = None;
        }
    }

    /// Returns the number of a ticket that looks: its own, or one that nobody had.
    pub(crate) fn number(&self, ticket: Option<u64>) -> u64 {
        ticket.unwrap_or(self.next)
    }

    /// Makes room for a ticket of that number, perhaps with the memory of `spare`. Then `spare` has
    /// what was replaced.
    ///
    /// # Errors
    ///
    /// When there is no memory, the error says for how many tickets `spare` should have room.
    pub(crate) fn make_room(&mut self, number: u64, spare: &mut VecDeque<Ticket>) -> Result<(), usize> {
        if self.place(number).is_err() && self.tickets.len() == self.tickets.capacity() {
            if spare.capacity() <= self.tickets.len() {
                return Err((2 * self.tickets.len()).max(4));
            }
            mem::swap(&mut self.tickets, spare);
            self.tickets.append(spare);
        }
        Ok(())
    }

    /// Joins the ticket, or a new one, if it is not in the queue. Puts it to sleep if `sleeper`
    /// says whom to wake from now on, and returns whom to wake was before. There is memory for it.
    pub(crate) fn join(
        &mut self,
        ticket: &mut Option<u64>,
        need: usize,
        sleeper: Option<Waiter>,
        now: Instant,
    ) -> Option<Waiter> {
        let number = self.number(*ticket);
        if ticket.replace(number).is_none() {
            self.next += 1;
        }
        let place = self.place(number);
        let at = place.unwrap_or_else(|at| {
            let state = State::Called;
            let (joined, since) = (now, now);
            let (puts, calls, is_known, is_passed) = (None, 0, false, false);
            let new = Ticket { number, need, state, joined, since, puts, calls, is_known, is_passed };
            self.tickets.insert(at, new);
            at
        });
        let sleeper = sleeper?;
        let ticket = &mut self.tickets[at];
        ticket.is_known |= place.is_ok() && matches!(ticket.state, State::Called);
        ticket.since = now;
        let old = mem::replace(&mut ticket.state, State::Asleep(sleeper));
        self.asleep_from = self.asleep_from.min(number);
        self.reset_overtake(number);
        old.into_sleeper()
    }

    /// Takes a ticket out, if it is there, and returns whom it was to wake.
    pub(crate) fn leave(&mut self, number: u64) -> Option<Waiter> {
        let place = self.place(number);
        let old = place.ok().and_then(|at| self.remove(at));
        self.reset_overtake(number);
        old
    }

    /// Ends the favour for this ticket: those behind it wait for it no more.
    fn reset_overtake(&mut self, number: u64) {
        if self.overtaken.is_some_and(|(overtaken, _)| overtaken == number) {
            self.overtaken = None;
        }
    }

    /// Takes a ticket out.
    fn remove(&mut self, at: usize) -> Option<Waiter> {
        let state = mem::replace(&mut self.tickets[at].state, State::Closed);
        self.gone += 1;
        self.compact();
        state.into_sleeper()
    }

    /// Forgets those who are gone, at the ends, and elsewhere when they are many.
    fn compact(&mut self) {
        let is_gone = |ticket: Option<&Ticket>| ticket.is_some_and(|it| matches!(it.state, State::Closed));
        while is_gone(self.tickets.front()) {
            self.tickets.pop_front();
            self.gone -= 1;
        }
        while is_gone(self.tickets.back()) {
            self.tickets.pop_back();
            self.gone -= 1;
        }
        if self.gone > self.tickets.len() / 2 {
            self.tickets.retain(|ticket| !matches!(ticket.state, State::Closed));
            self.gone = 0;
        }
    }

    /// Calls one who is asleep. Returns `false` when there is no room for it in the batch.
    fn call_one(&mut self, at: usize, now: Instant, batch: &mut Batch) -> bool {
        let Some(room) = batch.room() else { return false };
        let ticket = &mut self.tickets[at];
        if let State::Asleep(sleeper) = mem::replace(&mut ticket.state, State::Called) {
            *room = Some(sleeper);
        }
        ticket.since = now;
        ticket.calls = ticket.calls.saturating_add(1);
        if ticket.calls > OFTEN
            && self.overtaken.is_none_or(|(number, since)| number > ticket.number || is_over(since, now))
        {
            self.overtaken = Some((ticket.number, now));
        }
        self.look_after(now);
        true
    }

    /// Calls those who could take memory, of which `free` bytes of the budget are left, or may find
    /// some idle, after an `event`; `known` counts those who answered before. Returns `false` when
    /// there are more of them than the batch has room for.
    pub(crate) fn call(
        &mut self,
        event: Event,
        free: usize,
        now: Instant,
        known: &mut usize,
        batch: &mut Batch,
    ) -> bool {
        let Some(first) = self.first_asleep() else { return true };
        for at in first..self.tickets.len() {
            let ticket = &mut self.tickets[at];
            if !matches!(ticket.state, State::Asleep(_)) {
                continue;
            }
            let is_late = ticket.is_late(now);
            // What became idle before it came, and those in front did not need, it has to look for.
            let has_seen_all = ticket.puts == Some(self.puts);
            if ticket.need > free && has_seen_all && !is_late {
                // Those behind are to leave it what there is.
                ticket.is_passed = true;
                break;
            }
            // Where nothing was freed meanwhile, it would wake itself again and again.
            if event == Event::Returned(ticket.number) && !ticket.is_passed {
                break;
            }
            let is_known = ticket.is_known && !is_late;
            if is_known && *known == BACKUPS {
                break;
            }
            if !self.call_one(at, now, batch) {
                return false;
            }
            *known += usize::from(is_known);
        }
        true
    }

    /// Calls those in front of a ticket who have not looked for long. `false` as for `call`.
    pub(crate) fn call_late(&mut self, number: u64, now: Instant, batch: &mut Batch) -> bool {
        while let Some(first) = self.first_asleep()
            && self.tickets[first].number < number
            && self.tickets[first].is_late(now)
        {
            if !self.call_one(first, now, batch) {
                return false;
            }
        }
        true
    }

    /// Returns what a ticket that looks now is to do.
    pub(crate) fn turn(&mut self, number: u64, now: Instant) -> Look {
        if self.first_asleep().is_some_and(|first| self.tickets[first].number < number) {
            return Look::Wait;
        }
        if self.overtaken.is_some_and(|(other, since)| other < number && !is_over(since, now)) {
            return Look::Soon;
        }
        let puts = self.puts;
        let Ok(at) = self.place(number) else { return Look::Wait };
        self.tickets[at].is_passed = false;
        let before = self.tickets[at].puts.replace(puts);
        Look::Take { all: before != Some(puts) }
    }
}

/// Returns whether the turn of a waiter that was called at `since` is over, so that nobody waits
/// for it.
fn is_over(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) > TURN
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// Joins a new ticket, which sleeps from then on.
    fn sleeps(queue: &mut Queue, need: usize, now: Instant) -> u64 {
        let mut ticket = None;
        queue.join(&mut ticket, need, Some(Waiter::this_thread()), now);
        ticket.expect("it has a number")
    }

    /// Returns whether somebody is called when so many bytes are free.
    fn is_called(queue: &mut Queue, free: usize, now: Instant) -> bool {
        let mut batch = Batch::default();
        assert!(queue.call(Event::Freed, free, now, &mut 0, &mut batch));
        batch.room().is_some() && queue.first_asleep().is_none()
    }

    /// What is idle since before anybody waited, the first need not take. The next has to look for
    /// it, though what is free is not enough.
    #[test]
    fn who_has_not_looked_is_called() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let first = sleeps(&mut queue, 10, now);
        let second = sleeps(&mut queue, 100, now);
        assert_eq!(queue.turn(first, now), Look::Take { all: true });
        assert_eq!(queue.turn(second, now), Look::Wait);
        assert!(!is_called(&mut queue, 5, now), "the first knows that there is no more");
        queue.leave(first);
        assert!(is_called(&mut queue, 90, now), "there may be idle memory");
        // Once it has looked, it sleeps until there is enough, or something becomes idle.
        queue.join(&mut Some(second), 100, Some(Waiter::this_thread()), now);
        assert_eq!(queue.turn(second, now), Look::Take { all: true });
        assert!(!is_called(&mut queue, 90, now));
        queue.note_put();
        assert!(is_called(&mut queue, 90, now));
    }

    /// The first counts, also while it is called; one that was called long ago does not.
    #[test]
    fn the_wait_of_the_first() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let later = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(queue.longest_wait(now), None);
        let first = sleeps(&mut queue, 10, now);
        let second = sleeps(&mut queue, 10, later(2));
        assert_eq!(queue.longest_wait(later(9)), Some(Duration::from_secs(9)));
        assert_eq!(queue.turn(first, later(9)), Look::Take { all: true });
        assert!(is_called(&mut queue, 20, later(9)));
        assert_eq!(queue.longest_wait(later(9)), Some(Duration::from_secs(9)));
        queue.join(&mut Some(second), 10, Some(Waiter::this_thread()), later(10));
        assert_eq!(queue.longest_wait(later(12)), Some(Duration::from_secs(10)));
        queue.leave(second);
        queue.leave(first);
        assert_eq!(queue.longest_wait(later(12)), None);
    }

    /// One that could not look into a cache is called, though it is not its turn when it looks
    /// again: another was in front of it for a while.
    #[test]
    fn who_could_not_look_everywhere_is_called() {
        for saw_all in [true, false] {
            let (mut queue, now) = (Queue::default(), Instant::now());
            let first = sleeps(&mut queue, 10, now);
            let second = sleeps(&mut queue, 100, now);
            assert_eq!(queue.turn(first, now), Look::Take { all: true });
            assert!(is_called(&mut queue, 200, now), "both");
            assert_eq!(queue.turn(second, now), Look::Take { all: true });
            queue.join(&mut Some(first), 10, Some(Waiter::this_thread()), now);
            queue.join(&mut Some(second), 100, Some(Waiter::this_thread()), now);
            if !saw_all {
                queue.note_unseen(second);
            }
            assert_eq!(queue.turn(second, now), Look::Wait);
            queue.leave(first);
            assert_eq!(is_called(&mut queue, 90, now), !saw_all);
        }
    }

    /// What a request had for a part of it while it looked, others in front missed, and it is in
    /// what was freed for it meanwhile.
    #[test]
    fn what_is_given_back_is_told() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let returns = |queue: &mut Queue, number, free| {
            let mut batch = Batch::default();
            assert!(queue.call(Event::Returned(number), free, now, &mut 0, &mut batch));
            queue.first_asleep()
        };
        let first = sleeps(&mut queue, 10, now);
        let second = sleeps(&mut queue, 30, now);
        queue.turn(first, now);
        assert_eq!(returns(&mut queue, second, 5), Some(0));
        assert_eq!(returns(&mut queue, second, 10), Some(1), "the one in front");
        queue.leave(first);
        queue.turn(second, now);
        assert_eq!(returns(&mut queue, second, 40), Some(0), "it knows that this is not enough");
        assert!(!is_called(&mut queue, 20, now), "it has the rest");
        assert_eq!(returns(&mut queue, second, 40), None);
    }
}

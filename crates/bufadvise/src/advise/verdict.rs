//! The rule: what a pool has to save, and what its memory costs.
//!
//! 1. A recording of less than a second, or without a request, is too short to say. So is one in
//!    which a pool helps, by few requests or by few samples of them.
//! 2. What a candidate saves is a share of the program's processor time, which other programs on
//!    the machine change little. It is the difference between two replays of the same round. Of a
//!    program that had fewer page faults than the replay without a pool, or took less time, it is
//!    as much less. Of one that hardly runs, a thirtieth of the seconds counts as its time.
//! 3. More memory has a price: a tenth of the program's memory costs a hundredth of its time.
//! 4. A pool helps if it saves, without that price, what a user notices: 3 % of the time, in three
//!    of four rounds.

use serde::Serialize;

use super::replay::Replayed;
use super::traffic::PAGE_BYTES;
use crate::measure::statistics::quantile;
use crate::number::percent;

/// The share of its time that a user of a program notices.
pub(crate) const NOTICED: f64 = 0.03;
/// The price of as much memory again as the program has, as a share of its time.
const PRICE: f64 = 0.1;
/// More memory up to this has no price.
const FREE_BYTES: u64 = 1 << 20;
/// A program that takes a smaller part of a processor than one by this is as if it took that.
const IDLE: f64 = 30.0;
/// The shortest recording that says something,
pub(crate) const LEAST_SECONDS: f64 = 1.0;
/// the fewest requests that a pool is named by,
pub(crate) const LEAST_REQUESTS: f64 = 100.0;
/// and the fewest of them that were recorded.
pub(crate) const LEAST_SAMPLES: usize = 30;
/// A replay of a smaller share of the requests is a part of them: the most that is in use at once
/// in it need not be the most of all.
const WHOLLY: f64 = 0.9;
/// From this number of rounds on, an answer is sure where they agree.
pub(crate) const LEAST_ROUNDS: usize = 5;
/// The most rounds.
pub(crate) const ROUNDS: usize = 15;
/// A page fault takes that many nanoseconds: a quarter of a microsecond, and more in a virtual
/// machine.
const FAULT_NANOS: f64 = 500.0;
/// The system's fresh pages are zeros, and a pool's buffers are not: a byte takes this to zero.
const ZEROING_NANOS: f64 = 0.05;

/// What the program took of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Program {
    /// How long the recording is, and how long the part of it that was read.
    pub(crate) ran_seconds: f64,
    pub(crate) seconds: f64,
    /// The processor time of the program, its page faults and its memory at the peak; nothing
    /// where the recording does not say.
    pub(crate) processor_seconds: Option<f64>,
    pub(crate) faults: Option<u64>,
    pub(crate) bytes: Option<u64>,
}

impl Program {
    /// Returns the time of which savings are shares.
    pub(crate) fn time(&self) -> f64 {
        self.processor_seconds.map_or(self.seconds, |time| time.max(self.seconds / IDLE)).max(1e-9)
    }

    /// Returns the most bytes of a buffer that the program can have touched: all it ever had.
    pub(crate) fn touched(&self) -> f64 {
        self.bytes.map_or(f64::INFINITY, |bytes| bytes as f64)
    }
}

/// What was requested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Requests {
    /// How many, as far as the recording says.
    pub(crate) count: f64,
    /// The relative error of that.
    pub(crate) error: f64,
    /// What they cost in all, in pages: a request costs as much as a page of its buffer. The
    /// relative errors of that, and of the bytes that were in use at once.
    pub(crate) work: f64,
    pub(crate) work_error: f64,
    pub(crate) held_error: f64,
    /// How many were recorded, and how many are replayed.
    pub(crate) samples: usize,
    pub(crate) replayed: usize,
    pub(crate) replayed_work: f64,
    /// The share of the bytes in blocks that `bufalloc` serves, as far as the recording says.
    pub(crate) large_share: f64,
    /// The bytes in blocks of fresh pages that were requested as zeros.
    pub(crate) zeroed_bytes: f64,
}

/// What so many requests of so many bytes in all cost, in pages.
pub(crate) fn work(count: usize, bytes: f64) -> f64 {
    count as f64 + bytes / PAGE_BYTES as f64
}

impl Requests {
    /// Returns whether a part of them is replayed.
    pub(crate) fn are_a_part(&self) -> bool {
        self.replayed_work < WHOLLY * self.work
    }

    /// Returns whether a recording is long enough for an answer.
    pub(crate) fn are_enough(&self, program: &Program) -> bool {
        program.ran_seconds >= LEAST_SECONDS && self.replayed > 0
    }

    /// Returns what it takes to zero a pool's buffers where a program requests zeros, as a share of
    /// its time.
    pub(crate) fn zeroing(&self, program: &Program) -> f64 {
        ZEROING_NANOS * self.zeroed_bytes / 1e9 / program.time()
    }

    /// Returns whether there are too few to name a pool by.
    pub(crate) fn are_few(&self) -> bool {
        self.count < LEAST_REQUESTS || self.samples < LEAST_SAMPLES
    }
}

/// Times and memory of the replays as shares of what the program takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prices {
    pub(crate) program: Program,
    pub(crate) requests: Requests,
}

impl Prices {
    /// Returns the time of a replay, if it were of all requests, as a share of the program's. Pages
    /// are touched for the first time once, however many requests there are: each costs as much as
    /// one costs in the replay without a pool, `now`.
    pub(crate) fn share(&self, replayed: &Replayed, now: &Replayed) -> f64 {
        let (nanos, pages) = (replayed.nanos as f64, replayed.faults.min(replayed.bytes / PAGE_BYTES as u64));
        let first = (now.nanos as f64 / self.requests.replayed_work.max(1.0) * pages as f64).min(nanos);
        (first + (nanos - first) * self.times()) / 1e9 / self.program.time()
    }

    /// Returns how many times as much all requests cost as those that are replayed.
    fn times(&self) -> f64 {
        self.requests.work / self.requests.replayed_work.max(1.0)
    }

    /// Returns the share of its time that the program saves by a pool, by one round of replays.
    fn saved(&self, (now, pool): (&Replayed, &Replayed)) -> f64 {
        let replayed = (now.faults as f64 * self.times()).max(1.0);
        let share = self.share(now, now);
        let credible = self.program.faults.map_or(1.0, |faults| faults as f64 / replayed).min(share.recip());
        let saved = share - self.share(pool, now);
        saved * if saved > 0.0 { credible.min(1.0) } else { 1.0 } - self.requests.zeroing(&self.program)
    }

    /// Returns the price of so much more memory as a share of the program's time. Replays touch all
    /// pages. A program that has less memory than they have touches as much less of a pool.
    fn price(&self, more: u64, now: &[Replayed]) -> f64 {
        let now = now.iter().map(|replayed| replayed.bytes).max().unwrap_or(0);
        let of = self.program.bytes.unwrap_or(0).max(now).max(FREE_BYTES);
        if more <= FREE_BYTES { 0.0 } else { PRICE * more as f64 / of as f64 }
    }

    /// Compares a pool with what is there now, by its replays in the same rounds.
    pub(crate) fn compare(&self, now: &[Replayed], pool: &[Replayed]) -> Compared {
        let mut saved: Vec<f64> = now.iter().zip(pool).map(|pair| self.saved(pair)).collect();
        saved.sort_by(f64::total_cmp);
        let more = now.iter().zip(pool).map(|(now, pool)| pool.bytes.saturating_sub(now.bytes) as f64);
        let mut more: Vec<f64> = more.collect();
        more.sort_by(f64::total_cmp);
        let more_bytes = quantile(&more, 0.5) as u64;
        let (at, rounds) = (|share| quantile(&saved, share), saved.len());
        let (saved, low, least, most) = (at(0.5), at(0.25), at(0.1), at(0.9));
        Compared { saved, low, least, most, more_bytes, price: self.price(more_bytes, now), rounds }
    }

    /// Returns why it is not sure that so large a share is less than a user notices, if it is not:
    /// as many more requests as the samples allow for would not be.
    pub(crate) fn doubt_of_little(&self, share: f64) -> Option<String> {
        (share * (1.0 + 2.0 * self.requests.work_error) >= NOTICED)
            .then(|| few_samples("time", self.requests.work_error))
    }

    /// Returns whether the page faults of the program, without so many, take less than a user
    /// notices. Of a part that was read, they are not known.
    pub(crate) fn faults_are_little(&self, most: f64, without: f64) -> Option<bool> {
        let faults = self.program.faults.filter(|_| self.program.ran_seconds <= self.program.seconds)?;
        let faults = (faults as f64).min(most) - without;
        Some(FAULT_NANOS * faults / 1e9 / self.program.time() < NOTICED)
    }

    /// Returns why a replay without a pool, `now`, does not show that no pool helps, if it does
    /// not: it has few of the page faults, and the requests have as many pages.
    pub(crate) fn doubt_of_replay(&self, now: &Replayed) -> Option<String> {
        let replayed = now.faults as f64 * self.times();
        (self.faults_are_little(self.requests.work, replayed) == Some(false))
            .then(|| "Most page faults of the program are not in the replay".into())
    }

    /// Returns why an answer is not sure, if it is not: the rounds do not agree, or the samples
    /// leave it open.
    pub(crate) fn doubt(&self, compared: &Compared) -> Option<String> {
        let Compared { least, most, price, rounds, .. } = *compared;
        if rounds < LEAST_ROUNDS {
            return Some(format!("{LEAST_ROUNDS} rounds had no time: give it more, with --seconds"));
        }
        if !compared.is_clear() {
            let more = if rounds < ROUNDS { "more of them, with --seconds," } else { "a longer recording" };
            return Some(format!("The rounds differ, and {more} may change it"));
        }
        let Requests { work_error, held_error, .. } = self.requests;
        let low = least * (1.0 - 2.0 * work_error) - price * (1.0 + 2.0 * held_error);
        let high = most * (1.0 + 2.0 * work_error) - price * (1.0 - 2.0 * held_error).max(0.0);
        let is_memory = price * held_error > most * work_error;
        let (of, error) = if is_memory { ("memory", held_error) } else { ("time", work_error) };
        (low < NOTICED && high >= NOTICED).then(|| few_samples(of, error))
    }
}

fn few_samples(of: &str, error: f64) -> String {
    let open = percent(2.0 * error);
    format!("The samples leave ± {open} of its {of} open: --settings exact, or a smaller rate, leaves less")
}

/// What a pool saves, as shares of the program's time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Compared {
    /// The median of the rounds.
    pub(crate) saved: f64,
    /// What it saves at least in three of four rounds, in nine of ten, and at most in nine of ten.
    pub(crate) low: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// The median of how much more memory it takes, and the price of that.
    pub(crate) more_bytes: u64,
    pub(crate) price: f64,
    pub(crate) rounds: usize,
}

impl Compared {
    #[cfg(test)]
    pub(crate) fn of_equal_rounds(saved: f64, price: f64) -> Self {
        let (low, least, most) = (saved, saved, saved);
        Self { saved, low, least, most, more_bytes: 0, price, rounds: LEAST_ROUNDS }
    }

    /// Returns what remains of the saving behind the price.
    pub(crate) fn worth(&self) -> f64 {
        self.saved - self.price
    }

    pub(crate) fn helps(&self) -> bool {
        self.low - self.price >= NOTICED
    }

    /// Returns whether more rounds would hardly change the answer.
    pub(crate) fn is_clear(&self) -> bool {
        self.least - self.price >= NOTICED || self.most - self.price < NOTICED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn replayed(millis: u64, faults: u64, bytes: u64) -> Replayed {
        Replayed { nanos: millis * 1_000_000, faults, bytes, ..Replayed::default() }
    }

    /// A program that ran for 25 s and took 10 s of the processor, replayed as a whole.
    fn prices() -> Prices {
        let program = Program {
            ran_seconds: 25.0,
            seconds: 25.0,
            processor_seconds: Some(10.0),
            faults: Some(100_000),
            bytes: Some(100 * MIB),
        };
        Prices {
            program,
            requests: Requests {
                count: 1000.0,
                samples: 1000,
                replayed: 1000,
                work: 2000.0,
                replayed_work: 2000.0,
                ..Requests::default()
            },
        }
    }

    #[test]
    fn a_short_recording_is_not_enough() {
        let Prices { program, requests } = prices();
        assert!(requests.are_enough(&program));
        assert!(!requests.are_enough(&Program { ran_seconds: 0.25, ..program }));
        assert!(requests.are_enough(&Program { seconds: 0.25, ..program }), "a part was read");
        assert!(!Requests { replayed: 0, ..requests }.are_enough(&program));
        assert!(!requests.are_few() && Requests { samples: 29, ..requests }.are_few());
        assert!(Requests { count: 60.0, ..requests }.are_few());
    }

    #[test]
    fn a_saving_is_a_share_of_the_time() {
        let prices = prices();
        let saves = |now, pool| prices.compare(&[now], &[pool]);
        let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one} is not {other}");
        let compared = saves(replayed(500, 9, MIB), replayed(100, 9, MIB));
        close(compared.saved, 0.04);
        let doubt = |work_error, held_error, compared: &Compared| {
            let requests = Requests { work_error, held_error, ..prices.requests };
            Prices { requests, ..prices }.doubt(&Compared { rounds: 5, ..*compared })
        };
        assert!(doubt(0.0, 0.0, &compared).is_none() && doubt(0.1, 9.0, &compared).is_none());
        assert!(doubt(0.2, 0.0, &compared).is_some_and(|why| why.contains("± 40.0 % of its time open")));
        assert!(prices.doubt(&compared).is_some_and(|why| why.contains("had no time")));
        // What is far above is sure, or far below; not what rests on a price of few samples.
        let far = Compared::of_equal_rounds;
        assert!(doubt(0.01, 0.4, &far(0.05, 0.03)).is_some_and(|why| why.contains("of its memory open")));
        // The larger error is of nothing.
        assert!(doubt(0.3, 0.9, &far(0.025, 0.0)).is_some_and(|why| why.contains("± 60.0 % of its time")));
        assert!(doubt(0.4, 0.0, &far(0.2, 0.0)).is_none() && doubt(0.4, 0.0, &far(0.01, 0.0)).is_none());
        assert!(doubt(0.01, 0.4, &far(0.05, 0.1)).is_some() && doubt(0.01, 0.1, &far(0.05, 0.1)).is_none());
        let differ = prices.doubt(&Compared { most: 0.3, rounds: ROUNDS, ..far(0.01, 0.0) });
        assert!(differ.is_some_and(|why| why.contains("longer recording")));
        let few = Prices { requests: Requests { work_error: 0.4, ..prices.requests }, ..prices };
        assert!(few.doubt_of_little(0.01).is_none() && few.doubt_of_little(0.02).is_some());
        assert!(compared.helps() && compared.is_clear() && compared.price == 0.0);
        assert!(!saves(replayed(300, 9, MIB), replayed(100, 9, MIB)).helps(), "two percent");
        // A program that waits all the time, and one of which it is not known.
        let idle = Program { processor_seconds: Some(0.001), seconds: 300.0, ..prices.program };
        close(Prices { program: idle, ..prices }.share(&replayed(100, 9, MIB), &replayed(0, 0, 0)), 0.01);
        let unknown = Program { processor_seconds: None, ..idle };
        close(Prices { program: unknown, ..prices }.share(&replayed(300, 9, MIB), &replayed(0, 0, 0)), 0.001);
    }

    /// A few small requests, then large ones: a replay of the small and a tenth of the large is a
    /// tenth of the time. Pages are touched for the first time once.
    #[test]
    fn a_part_is_as_much_as_it_costs() {
        let (small, large) = (work(10, 1e3), work(300, 300.0 * 41_943_040.0));
        let (work, replayed_work) = (small + large, small + large / 10.0);
        let part = Prices { requests: Requests { work, replayed_work, ..prices().requests }, ..prices() };
        let share = |faults, bytes| part.share(&replayed(100, faults, bytes), &replayed(600, 0, 0));
        // None for the first time, and 25 600 pages of two microseconds.
        let (all, first) = (share(0, 0), share(1_000_000, 100 * MIB));
        assert!((all - 0.1).abs() < 1e-4 && (first - (0.005 + 0.05)).abs() < 3e-3, "{all}, {first}");
    }

    /// `zstd`: what the replay faults in again and again was no fault of the program.
    #[test]
    fn faults_that_the_program_did_not_have_are_not_saved() {
        let prices = prices();
        let compared = prices.compare(&[replayed(500, 1_000_000, MIB)], &[replayed(100, 10, MIB)]);
        assert!((compared.saved - 0.004).abs() < 1e-9 && !compared.helps(), "{compared:?}");
        let with = |faults| Prices { program: Program { faults, ..prices.program }, ..prices };
        let unknown = with(None);
        let few =
            [None, Some(599_000), Some(601_000)].map(|faults| with(faults).faults_are_little(f64::MAX, 0.0));
        assert_eq!(few, [None, Some(true), Some(false)]);
        let mut part = with(Some(9));
        part.program.ran_seconds += 0.1;
        assert_eq!(part.faults_are_little(f64::MAX, 0.0), None, "there may be more");
        assert!(unknown.compare(&[replayed(500, 1_000_000, MIB)], &[replayed(100, 10, MIB)]).helps());
    }

    /// What is only read takes less time than in a replay, which writes.
    #[test]
    fn no_more_is_saved_than_the_program_takes() {
        let saved = prices().compare(&[replayed(20_000, 9, MIB)], &[replayed(5000, 9, MIB)]).saved;
        assert!((saved - 0.75).abs() < 1e-9, "{saved}");
    }

    /// A program with few large buffers before many small ones, which are replayed.
    #[test]
    fn a_replay_without_the_page_faults_shows_little() {
        let mut prices = prices();
        prices.program.faults = Some(1_000_000);
        let is_in_doubt =
            |prices: &Prices, faults| prices.doubt_of_replay(&replayed(9, faults, MIB)).is_some();
        assert!(!is_in_doubt(&prices, 0), "2000 pages were requested");
        (prices.requests.work, prices.requests.replayed_work) = (4e6, 1e6);
        assert!(is_in_doubt(&prices, 99_000) && !is_in_doubt(&prices, 101_000));
    }

    #[test]
    fn zeros_have_a_price() {
        let mut prices = prices();
        prices.requests.zeroed_bytes = 1e10;
        let saved = prices.compare(&[replayed(5000, 9, MIB)], &[replayed(100, 9, MIB)]).saved;
        assert!((saved - (0.49 - 0.05)).abs() < 1e-9, "half a second of ten: {saved}");
    }

    /// `git log -p`: a pool with 37 % more memory has to save more than the price of that.
    #[test]
    fn memory_has_a_price() {
        let prices = prices();
        let (now, pool) = (replayed(500, 9, 10 * MIB), replayed(100, 9, 47 * MIB));
        let compared = prices.compare(&[now], &[pool]);
        assert!((compared.price - 0.037).abs() < 1e-9 && !compared.helps(), "{compared:?}");
        assert!(prices.compare(&[replayed(1100, 9, 10 * MIB)], &[pool]).helps());
        // A little is free, and less earns nothing.
        let price = |now, pool| prices.compare(&[now], &[pool]).price;
        assert_eq!([price(now, replayed(100, 9, 11 * MIB)), price(pool, now)], [0.0; 2]);
        let one_round = [100, 100, 200].map(|mib| replayed(90, 10, mib * MIB));
        assert_eq!(prices.compare(&[replayed(100, 10, 100 * MIB); 3], &one_round).price, 0.0);
        // `sort`: the program touches a seventh of what the replays touch.
        assert!((price(replayed(9, 9, 700 * MIB), replayed(9, 9, 1050 * MIB)) - 0.05).abs() < 1e-9);
    }

    #[test]
    fn a_round_that_was_disturbed_decides_nothing() {
        let prices = prices();
        let now = [200, 200, 900, 200, 200, 200, 200].map(|millis| replayed(millis, 9, MIB));
        let pool = [150; 7].map(|millis| replayed(millis, 9, MIB));
        assert!(!prices.compare(&now, &pool).helps());
        let now = [500, 500, 120, 500, 500, 500, 500].map(|millis| replayed(millis, 9, MIB));
        let compared = prices.compare(&now, &pool);
        assert!(compared.helps() && !compared.is_clear(), "{compared:?}");
    }
}

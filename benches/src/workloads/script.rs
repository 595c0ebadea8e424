//! Requests that are drawn or recorded beforehand, played in their order: the cells of `mixed`,
//! `queue`, `tasks` and `replay`.

use std::time::{Duration, Instant};

use crate::harness::block::touch;
use crate::harness::cell::Cell;
use crate::harness::check;
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

/// The buffer at a place is dropped, and one of so many bytes comes in its stead; none where they are
/// 0. Places are small numbers, so that playing stays in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) place: u32,
    pub(super) bytes: u32,
}

/// Steps that are played again and again. What is held at the end is so at the start of the next lap.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) steps: Vec<Step>,
    places: usize,
    /// Steps that acquire a buffer.
    pub(super) acquires: u64,
    /// Most buffers that are held at once, their most bytes together, and the bytes of the largest.
    pub(super) live: usize,
    pub(super) peak_bytes: usize,
    pub(super) largest: usize,
}

impl Script {
    pub(super) fn new(steps: Vec<Step>) -> Self {
        let places = steps.iter().map(|step| step.place as usize + 1).max().unwrap_or(0);
        let mut script = Self { places, ..Self::default() };
        let mut held = vec![0; places];
        let (mut live, mut bytes_out) = (0, 0);
        // In the second lap the places are taken from the start.
        for step in steps.iter().chain(&steps) {
            let bytes = step.bytes as usize;
            let before = core::mem::replace(&mut held[step.place as usize], bytes);
            live = live + usize::from(bytes > 0) - usize::from(before > 0);
            bytes_out = bytes_out + bytes - before;
            script.live = script.live.max(live);
            script.peak_bytes = script.peak_bytes.max(bytes_out);
            script.largest = script.largest.max(bytes);
        }
        script.acquires = steps.iter().filter(|step| step.bytes > 0).count() as u64;
        Self { steps, ..script }
    }

    /// What a pool for the script has to hold.
    pub(super) fn plan(&self) -> Plan {
        Plan::mixed(self.live, self.largest, self.peak_bytes)
    }

    /// Checks a pool with buffers of the script's sizes.
    pub(super) fn check<P: Pool>(&self, pool: &mut P, plan: &Plan, seed: u64) -> Result<(), String> {
        const SIZES: usize = 4096;
        let bytes = self.steps.iter().map(|step| step.bytes as usize).filter(|&bytes| bytes > 0);
        let sizes: Vec<usize> = bytes.take(SIZES).collect();
        check::pool_from(pool, plan, seed, &|index| sizes[index % sizes.len()])
    }

    /// Places for what is held.
    pub(super) fn places<B>(&self) -> Vec<Option<B>> {
        check::empty(self.places)
    }
}

/// Does one step.
#[inline(always)]
fn play<P: Pool>(pool: &mut P, places: &mut [Option<P::Buf>], step: Step) {
    let place = &mut places[step.place as usize];
    *place = None;
    if step.bytes > 0 {
        let mut buf = pool.acquire(step.bytes as usize);
        touch(&mut buf);
        *place = Some(buf);
    }
}

/// Does all steps.
#[inline(always)]
pub(super) fn play_all<P: Pool>(pool: &mut P, places: &mut [Option<P::Buf>], steps: &[Step]) {
    for &step in steps {
        play(pool, places, step);
    }
}

/// One thread that plays a script.
struct Player<P: Pool> {
    pool: P,
    plan: Plan,
    script: Script,
    places: Vec<Option<P::Buf>>,
}

/// The cell of a script, whose pools get a plan of their own where the script's does not suit.
pub(super) fn cell<P: Pool>(
    script: Script,
    plan: Plan,
    settings: Settings,
) -> Result<Box<dyn Cell>, Unsupported> {
    let plan = plan.with(settings);
    let places = script.places();
    Ok(Box::new(Player { pool: P::build(&plan)?, plan, script, places }))
}

impl<P: Pool> Cell for Player<P> {
    fn check(&mut self) -> Result<(), String> {
        self.script.check(&mut self.pool, &self.plan, 0)
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..iterations {
            play_all(&mut self.pool, &mut self.places, &self.script.steps);
        }
        start.elapsed()
    }

    fn operations(&self) -> u64 {
        self.script.acquires
    }

    fn sample(&mut self, nanos: &mut [u32]) -> bool {
        let mut steps = self.script.steps.iter().cycle();
        for nanos in nanos {
            loop {
                let &step = steps.next().expect("a script has steps");
                let start = Instant::now();
                play(&mut self.pool, &mut self.places, step);
                *nanos = start.elapsed().as_nanos().try_into().unwrap_or(u32::MAX);
                if step.bytes > 0 {
                    break;
                }
            }
        }
        true
    }

    fn fallbacks(&self) -> Option<u64> {
        self.pool.fallbacks()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell as Shared;
    use std::rc::Rc;

    use super::*;
    use crate::harness::block::Block;
    use crate::harness::case::Case;
    use crate::harness::measure::Scale;
    use crate::workloads::{cases, whole};

    /// Says how many buffers are out, and how many bytes: now, and at most.
    struct Counting(Rc<Out>);
    #[derive(Default)]
    struct Out {
        now: Shared<(usize, usize)>,
        most: Shared<(usize, usize)>,
    }
    struct Counted(Vec<u8>, Rc<Out>);

    impl Drop for Counted {
        fn drop(&mut self) {
            let (buffers, bytes) = self.1.now.get();
            self.1.now.set((buffers - 1, bytes - self.0.capacity()));
        }
    }

    // SAFETY: a vector that does not grow.
    unsafe impl Block for Counted {
        fn start(&mut self) -> *mut u8 {
            self.0.as_mut_ptr()
        }
    }

    impl Pool for Counting {
        type Buf = Counted;
        fn build(_plan: &Plan) -> Result<Self, Unsupported> {
            Ok(Self(Rc::default()))
        }
        fn acquire(&mut self, bytes: usize) -> Counted {
            let (out, bytes) = (&self.0, Vec::with_capacity(bytes));
            let (buffers, sum) = out.now.get();
            out.now.set((buffers + 1, sum + bytes.capacity()));
            let (now, most) = (out.now.get(), out.most.get());
            out.most.set((now.0.max(most.0), now.1.max(most.1)));
            Counted(bytes, Rc::clone(out))
        }
    }

    /// A pool with a quarter more bytes would be too small if the plan said less than is out.
    #[test]
    fn no_more_is_out_than_planned() {
        let step = |place, bytes| Step { place, bytes };
        let script = Script::new(vec![step(0, 10), step(1, 5), step(0, 0), step(2, 7), step(1, 6)]);
        assert_eq!((script.live, script.peak_bytes, script.largest, script.acquires), (3, 23, 10, 4));
        let mut pool = Counting(Rc::default());
        let mut places = script.places();
        for _ in 0..3 {
            play_all(&mut pool, &mut places, &script.steps);
        }
        assert_eq!(pool.0.most.get(), (3, 23), "the plan is exact");
        drop(places);
        assert_eq!(pool.0.now.get(), (0, 0));
    }

    #[test]
    fn every_row_keeps_its_bytes() {
        use crate::adapters::ring::RingBuffers;
        use crate::adapters::slot::SlotBuffers;
        let is_script = |case: &Case| {
            matches!(case, Case::Mixed { .. } | Case::Queue { .. } | Case::Tasks { threads: 1, .. })
        };
        for case in cases(Scale::Test).into_iter().filter(is_script) {
            let planned = Settings::Planned;
            for cell in [whole::<SlotBuffers>(&case, planned), whole::<RingBuffers>(&case, planned)] {
                let mut cell = cell.unwrap_or_else(|reason| panic!("{case}: {}", reason.0));
                assert_eq!(cell.check(), Ok(()), "{case}");
                assert!(cell.run(1) > Duration::ZERO && cell.sample(&mut [0; 10]));
            }
        }
    }
}

//! Buffers that are released in an exception handler, at any moment of what the main program does with the pool.
//!
//! For a pool the handler is one more thread: its releases are stores that the next acquire sees. A timer interrupts the main
//! program every few hundred instructions; the handler takes what it finds in a queue, looks at every byte, and drops it.

use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bufcore::{AcquireError, Buf, BufferPool, Frozen, NoFallback, Region};
use bufring::{RingLease, RingPool};
use bufslot::SlotPool;
use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::exception;
use cortex_m_semihosting::hprintln;
use critical_section::Mutex;
use heapless::spsc::{Consumer, Queue};
use no_std_scenarios::pattern::{self, Numbers};
use no_std_scenarios::{Checked, Strategy, check, fail, ok, some};

type SlotLease = <SlotPool<NoFallback> as BufferPool>::Lease;

/// Cycles from one exception to the next: some tens of acquires.
const PERIOD: u32 = 997;
/// Releases in the handler, and those of them that have to come while the main program is within a pool.
const RELEASES: u32 = 5000;
const WITHIN: u32 = 200;
/// More buffers than this are never needed for that.
const MOST_BUFFERS: u32 = 20_000_000;

/// A buffer on its way to the handler, with the seed of its bytes.
enum Parcel {
    Slot(u32, Buf<SlotLease>),
    SlotView(u32, Frozen<SlotLease>),
    Ring(u32, Buf<RingLease>),
}

impl Parcel {
    fn is_right(&self) -> bool {
        match self {
            Self::Slot(seed, buf) => pattern::is(buf, *seed, 0),
            Self::SlotView(seed, view) => pattern::is(view, *seed, 0),
            Self::Ring(seed, buf) => pattern::is(buf, *seed, 0),
        }
    }
}

static INBOX: Mutex<RefCell<Option<Consumer<'static, Parcel>>>> = Mutex::new(RefCell::new(None));
/// The main program is within a pool.
static IS_WITHIN: AtomicBool = AtomicBool::new(false);
static RELEASED: AtomicU32 = AtomicU32::new(0);
static RELEASED_WITHIN: AtomicU32 = AtomicU32::new(0);
static WRONG: AtomicU32 = AtomicU32::new(0);

/// One more; handlers do not interrupt each other here.
fn count(counter: &AtomicU32) {
    // ORDER: Relaxed: one processor.
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[exception]
fn SysTick() {
    if crate::channel::tick() {
        return;
    }
    let next =
        critical_section::with(|section| INBOX.borrow_ref_mut(section).as_mut().and_then(Consumer::dequeue));
    let Some(parcel) = next else { return };
    if !parcel.is_right() {
        count(&WRONG);
    }
    drop(parcel);
    count(&RELEASED);
    // ORDER: Relaxed: one processor, and the handler runs between two instructions of the main program.
    if IS_WITHIN.load(Ordering::Relaxed) {
        count(&RELEASED_WITHIN);
    }
}

/// Runs it over two regions, the first of which comes back. The timer is left set up, and stopped.
pub(crate) fn run(lent: Region, second: Region, timer: &mut SYST) -> Checked<Region> {
    let queue = cortex_m::singleton!(: Queue<Parcel, 16> = Queue::new());
    let (mut outbox, inbox) = some!(queue).split();
    critical_section::with(|section| INBOX.borrow_ref_mut(section).replace(inbox));
    timer.set_clock_source(SystClkSource::Core);
    timer.set_reload(PERIOD);
    timer.clear_current();
    timer.enable_interrupt();
    timer.enable_counter();

    let (mut slots, mut ring) = (SlotPool::over(lent)?, RingPool::over(second)?);
    let mut numbers = Numbers::new(11);
    let (mut refused, mut here) = (0_u32, 0_u32);
    let mut seed = 0;
    // ORDER: Relaxed: one processor.
    while RELEASED.load(Ordering::Relaxed) < RELEASES || RELEASED_WITHIN.load(Ordering::Relaxed) < WITHIN {
        seed += 1;
        check!(seed < MOST_BUFFERS);
        let parcel = match parcel(&mut slots, &mut ring, numbers.below(3), numbers.below(900), seed) {
            Ok(parcel) => parcel,
            Err(AcquireError::Exhausted { .. }) => {
                refused += 1;
                continue;
            }
            Err(_) => fail!(),
        };
        // A buffer that the handler has no room for is released here, so that both do.
        if let Err(parcel) = outbox.enqueue(parcel) {
            check!(parcel.is_right());
            here += 1;
        }
    }
    // The rest goes by the handler, too.
    while outbox.len() > 0 {}
    timer.disable_interrupt();
    timer.disable_counter();
    // ORDER: Relaxed, here and below: one processor, and the handler does not run any more.
    check!(WRONG.load(Ordering::Relaxed) == 0);
    check!(refused > 0 && here > 0);
    let (released, within) = (RELEASED.load(Ordering::Relaxed), RELEASED_WITHIN.load(Ordering::Relaxed));
    hprintln!(
        "{} released by the handler, {} of them within an acquire; {} here; {} refused",
        released,
        within,
        here,
        refused
    );
    ok!(Strategy::into_region(ring));
    Ok(ok!(Strategy::into_region(slots)))
}

/// A filled buffer of `size` bytes, of one of three kinds.
fn parcel(
    slots: &mut SlotPool<NoFallback>,
    ring: &mut RingPool,
    kind: usize,
    size: usize,
    seed: u32,
) -> Result<Parcel, AcquireError> {
    if kind == 0 {
        let mut buf = within(|| ring.acquire_zeroed(size))?;
        pattern::fill(&mut buf, seed);
        return Ok(Parcel::Ring(seed, buf));
    }
    let mut buf = within(|| slots.acquire_zeroed(size))?;
    pattern::fill(&mut buf, seed);
    if kind == 1 {
        return Ok(Parcel::Slot(seed, buf));
    }
    // One of two views is dropped here, the other one there.
    let view = buf.freeze();
    let copy = view.clone();
    drop(view);
    Ok(Parcel::SlotView(seed, copy))
}

/// Says that the main program is within a pool while `work` runs.
fn within<T>(work: impl FnOnce() -> T) -> T {
    // ORDER: Release, so that the compiler moves nothing of the work before it.
    IS_WITHIN.store(true, Ordering::Release);
    let result = work();
    // ORDER: Release, so that the compiler moves nothing of the work behind it.
    IS_WITHIN.store(false, Ordering::Release);
    result
}

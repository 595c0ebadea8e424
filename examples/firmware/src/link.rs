//! A serial link in frames: two ports with a wire between them, each received in its interrupt handler, straight into a pool.
//!
//! A frame is a payload and its CRC-16, stuffed by COBS so that no byte of it is 0, and a 0 that ends it. The handler of one port
//! writes what comes into a frame of a slot pool, that of the other one into a frame of a ring. Whole frames go to the main program
//! as buffers. That takes the stuffing off in place, checks, and answers with the same bytes the other way.

use core::cell::RefCell;

use bufcore::{Buf, NoFallback, Region, Writer};
use bufring::RingPool;
use bufslot::SlotPool;
use cortex_m_semihosting::hprintln;
use crc::{CRC_16_IBM_SDLC, Crc};
use critical_section::Mutex;
use heapless::spsc::{Consumer, Producer, Queue};
use lm3s6965::interrupt;
use no_std_scenarios::pattern::{self, Numbers};
use no_std_scenarios::{Checked, Strategy, check, ok, some};

use crate::uart::{UART0, UART1, Uart};

const CHECKSUM: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_SDLC);
/// The longest payload; with checksum and stuffing it fits into what a port's pool has several times.
const MOST_BYTES: usize = 600;
/// Frames there and back.
const FRAMES: u32 = 400;
/// One in this number of frames is damaged on the wire.
const DAMAGED_EVERY: u32 = 16;
/// Looks at a queue before a frame counts as lost: seconds.
const PATIENCE: u32 = 50_000_000;

type Frame<S> = Buf<<S as Strategy>::Of>;

/// What a handler works with.
struct Receiver<S: Strategy> {
    writer: Writer<S>,
    whole: Producer<'static, Frame<S>>,
    /// What of a frame did not fit; it is given up, up to its end.
    skips: bool,
    /// Frames that were given up.
    lost: u32,
}

impl<S: Strategy> Receiver<S> {
    /// Takes all that has come.
    fn receive(&mut self, port: Uart) {
        while let Some(byte) = port.received() {
            if byte != 0 {
                // In place; the pool moves the frame where there is more room.
                self.skips = self.skips || self.writer.extend_from_slice(&[byte]).is_err();
                continue;
            }
            let frame = self.writer.finish();
            let handed_on = !self.skips && self.whole.enqueue(frame).is_ok();
            self.lost += u32::from(!handed_on);
            self.skips = false;
        }
        port.clear_interrupt();
    }
}

type Shared<S> = Mutex<RefCell<Option<Receiver<S>>>>;

static FROM_RIGHT: Shared<RingPool> = Mutex::new(RefCell::new(None));
static FROM_LEFT: Shared<SlotPool<NoFallback>> = Mutex::new(RefCell::new(None));

fn handle<S: Strategy>(receiver: &Shared<S>, port: Uart) {
    critical_section::with(|section| {
        if let Some(receiver) = receiver.borrow_ref_mut(section).as_mut() {
            receiver.receive(port);
        }
    });
}

#[interrupt]
fn UART0() {
    handle(&FROM_RIGHT, UART0);
}

#[interrupt]
fn UART1() {
    handle(&FROM_LEFT, UART1);
}

/// One end, as the main program sees it.
struct End<S: Strategy + 'static> {
    port: Uart,
    receiver: &'static Shared<S>,
    frames: Consumer<'static, Frame<S>>,
}

impl<S: Strategy> End<S> {
    fn start(
        port: Uart,
        receiver: &'static Shared<S>,
        queue: &'static mut Queue<Frame<S>, 8>,
        region: Region,
    ) -> Checked<Self> {
        let (whole, frames) = queue.split();
        let state = Receiver { writer: Writer::new(S::over(region)?), whole, skips: false, lost: 0 };
        critical_section::with(|section| receiver.borrow_ref_mut(section).replace(state));
        port.start();
        Ok(Self { port, receiver, frames })
    }

    /// Waits for the next frame, takes the stuffing off, and checks it; `None` when it was damaged.
    fn next(&mut self) -> Checked<Option<Frame<S>>> {
        let mut looks = 0;
        let mut frame = loop {
            if let Some(frame) = self.frames.dequeue() {
                break frame;
            }
            looks += 1;
            check!(looks < PATIENCE);
        };
        let Ok(len) = cobs::decode_in_place(&mut frame) else { return Ok(None) };
        let Some(payload) = len.checked_sub(2) else { return Ok(None) };
        let is_whole = CHECKSUM.checksum(&frame[..payload]).to_le_bytes() == frame[payload..len];
        frame.truncate(payload);
        Ok(is_whole.then_some(frame))
    }

    fn lost(&self) -> Checked<u32> {
        let lost =
            critical_section::with(|section| self.receiver.borrow_ref(section).as_ref().map(|it| it.lost));
        Ok(some!(lost))
    }

    /// Stops receiving; nothing may be out any more.
    fn stop(self) -> Checked<Region> {
        let state = critical_section::with(|section| self.receiver.borrow_ref_mut(section).take());
        Ok(ok!(some!(state).writer.into_inner().into_region()))
    }
}

/// Puts a payload into a frame, made in a buffer of `pool`, and sends it, `damage` done to the bytes on the wire.
fn send(pool: &mut impl Strategy, port: Uart, payload: &[u8], damage: impl FnOnce(&mut [u8])) -> Checked {
    let mut plain = ok!(pool.acquire(payload.len() + 2));
    ok!(plain.extend_from_slice(payload));
    ok!(plain.extend_from_slice(&CHECKSUM.checksum(payload).to_le_bytes()));
    let mut wire = ok!(pool.acquire_zeroed(cobs::max_encoding_length(plain.len())));
    let len = ok!(cobs::try_encode(&plain, &mut wire));
    damage(&mut wire[..len]);
    port.send(wire[..len].iter().copied().chain([0]));
    Ok(())
}

/// Changes a byte to another one that is not 0 either.
fn flip(byte: &mut u8) {
    *byte ^= if *byte == 1 { 2 } else { 1 };
}

/// Sends frames to and fro, over three regions. With `corrupt`, one is damaged that is taken for a good one.
pub(crate) fn run(sending: Region, left: Region, right: Region, corrupt: bool) -> Checked {
    let mut pool = SlotPool::over(sending)?;
    let queue = cortex_m::singleton!(: Queue<Frame<RingPool>, 8> = Queue::new());
    let mut left = End::<RingPool>::start(UART0, &FROM_RIGHT, some!(queue), left)?;
    let queue = cortex_m::singleton!(: Queue<Frame<SlotPool<NoFallback>>, 8> = Queue::new());
    let mut right = End::<SlotPool<NoFallback>>::start(UART1, &FROM_LEFT, some!(queue), right)?;

    let bytes = to_and_fro(&mut pool, &mut left, &mut right, corrupt)?;
    check!(left.lost()? == 0 && right.lost()? == 0);
    let lost = more_than_fits(&mut pool, &mut left, &mut right)?;
    hprintln!(
        "{} frames there and back, {} bytes of payload; {} given up where no room was left",
        FRAMES,
        bytes,
        lost
    );
    ok!(Strategy::into_region(pool));
    left.stop()?;
    right.stop()?;
    Ok(())
}

fn to_and_fro(
    pool: &mut SlotPool<NoFallback>,
    left: &mut End<RingPool>,
    right: &mut End<SlotPool<NoFallback>>,
    corrupt: bool,
) -> Checked<usize> {
    let mut numbers = Numbers::new(17);
    let (mut bytes, mut damaged) = (0, 0);
    for seed in 1..=FRAMES {
        let mut payload = ok!(pool.acquire_zeroed(1 + numbers.below(MOST_BYTES)));
        pattern::fill(&mut payload, seed);
        let is_damaged = seed % DAMAGED_EVERY == 0;
        let hit = numbers.below(payload.len());
        send(pool, left.port, &payload, |wire| {
            if is_damaged || (corrupt && seed == FRAMES / 2 + 1) {
                flip(&mut wire[hit]);
            }
        })?;
        let Some(there) = right.next()? else {
            check!(is_damaged);
            damaged += 1;
            continue;
        };
        check!(!is_damaged && there[..] == payload[..] && pattern::is(&there, seed, 0));
        // The answer is sent out of a view of what was received, while another one is held.
        let view = there.freeze();
        let held = view.clone();
        send(pool, right.port, &view, |_| {})?;
        drop(view);
        let back = some!(left.next()?);
        check!(back[..] == held[..] && back.len() == payload.len());
        bytes += back.len();
    }
    check!(damaged == FRAMES / DAMAGED_EVERY);
    Ok(bytes)
}

/// Frames that nobody takes, until neither queue nor pool has room; then all that were kept are right, and the rest were counted.
fn more_than_fits(
    pool: &mut SlotPool<NoFallback>,
    left: &mut End<RingPool>,
    right: &mut End<SlotPool<NoFallback>>,
) -> Checked<u32> {
    const SENT: u32 = 40;
    let mut lost = 0;
    for (is_long, bytes) in [(false, 20), (true, MOST_BYTES)] {
        let before = right.lost()?;
        for seed in 0..SENT {
            let mut payload = ok!(pool.acquire_zeroed(bytes));
            pattern::fill(&mut payload, seed);
            send(pool, left.port, &payload, |_| {})?;
            // Not faster than the wire.
            let mut looks = 0;
            while right.frames.len() as u32 + right.lost()? - before <= seed {
                looks += 1;
                check!(looks < PATIENCE);
            }
        }
        let given_up = right.lost()? - before;
        let kept = right.frames.len() as u32;
        // The queue has room for seven; of the long ones the pool has for fewer.
        check!(kept + given_up == SENT && kept >= 2 && given_up > 0 && (is_long == (kept < 7)));
        for seed in 0..kept {
            let frame = some!(right.next()?);
            check!(frame.len() == bytes && pattern::is(&frame, seed, 0));
        }
        lost += given_up;
    }
    Ok(lost)
}

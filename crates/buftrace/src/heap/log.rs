//! The recording as it is written: records into a block in memory, whole blocks into the file.

use core::sync::atomic::{AtomicU64, Ordering};

use super::modules::{Code, Modules};
use super::output::{Output, Stop};
use super::stacks::{Known, Stack, Stacks};
use super::system::{self, Maybe};
use crate::MAX_TIME_NS;
use crate::heap_settings::Settings;
use crate::profile::format::{
    self, BLOCK_HEAD_BYTES, GOES_ON, HEAD_BITS, HEAD_GROWN, HEAD_OTHER_THREAD, HEAD_ZEROED, KIND_ACQUIRE,
    KIND_MODULE, KIND_RATE, KIND_RELEASE, KIND_RESIZE, KIND_STACK, KIND_START, KIND_STATE, LIMIT, MAGIC,
    STOPPED, VERSION,
};

/// A block is written when it is about this long.
const BLOCK_BYTES: usize = 24 << 10;
/// No record is longer: a module has a path and a build id, a stack its addresses.
const RECORD_BYTES: usize = 8 << 10;
/// The last block says how the recording ended.
const LAST_BLOCK_BYTES: usize = 128;
/// An event that is only in memory is lost when the program is killed: it is written after so long,
/// with the next event.
const FLUSH_NS: u64 = 100_000_000;
/// The number of threads that have numbers of their own at once.
const NUMBERS: usize = 4096;

/// The number of events that were lost.
static LOST: AtomicU64 = AtomicU64::new(0);

/// The number of forks of this process.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Counts a fork: its child is not recorded.
pub(super) extern "C" fn forked() {
    // ORDER: Relaxed: a count.
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Counts an event that is lost.
pub(super) fn lose() {
    // ORDER: Relaxed: a count.
    LOST.fetch_add(1, Ordering::Relaxed);
}

/// The recording. All fields begin as zeros.
pub(super) struct Log {
    output: Output,
    settings: Maybe<Settings>,
    process: u64,
    /// A block: its head, and the records so far.
    block: [u8; BLOCK_BYTES + 2 * RECORD_BYTES],
    /// What of it is filled, without the head.
    used: usize,
    began_ns: u64,
    /// What the process had taken by then.
    before: [u64; 4],
    /// Of the last event, since the beginning.
    at_ns: u64,
    thread: u32,
    flushed_ns: u64,
    /// The next object's.
    id: u64,
    /// By number of a thread: a bit that is set while it is in use.
    numbers: [u64; NUMBERS / 64],
    stacks: Stacks,
    modules: Modules,
}

/// A request that is recorded.
pub(super) struct Request<'a> {
    pub(super) bytes: usize,
    pub(super) zeroed: bool,
    pub(super) grown_from: Option<usize>,
    pub(super) stack: &'a Stack,
}

impl Log {
    /// Begins a recording in a new file.
    #[inline(never)]
    pub(super) fn begin(&mut self, path: &[u8], settings: Settings) -> Result<(), Stop> {
        self.output.open(path, settings.limit_bytes)?;
        self.settings.set(settings);
        let begun = self.write_head();
        if begun.is_err() {
            self.settings.take();
            self.output.delete();
        }
        begun
    }

    fn write_head(&mut self) -> Result<(), Stop> {
        self.process = system::process();
        self.began_ns = system::now_ns();
        self.before = system::usage();
        (self.used, self.at_ns, self.thread, self.flushed_ns) = (0, 0, 0, 0);
        self.id = 0;
        // ORDER: Relaxed: counts.
        LOST.store(0, Ordering::Relaxed);
        FORKS.store(0, Ordering::Relaxed);
        self.numbers = [0; NUMBERS / 64];
        self.stacks.clear();
        self.modules.clear();
        let mut head = [0; MAGIC.len() + 2];
        for (place, byte) in head.iter_mut().zip(MAGIC.iter().chain(&[VERSION, 0])) {
            *place = *byte;
        }
        self.output.write(&head)?;
        self.start();
        self.read_modules(0);
        self.flush()
    }

    fn start(&mut self) {
        let Some(settings) = self.settings.get() else { return };
        let mut program = [0; format::MAX_TEXT_BYTES];
        let length = system::program(&mut program);
        self.number(u64::from(KIND_START));
        self.text(concat!("buftrace ", env!("CARGO_PKG_VERSION")).as_bytes());
        self.text(program.get(..length).unwrap_or_default());
        for number in [
            self.process,
            system::unix_seconds(),
            settings.min_bytes as u64,
            u64::from(KIND_RATE),
            settings.rate_bytes,
        ] {
            self.number(number);
        }
    }

    /// Records a request, and returns the number of its object.
    pub(super) fn acquire(&mut self, thread: u32, request: &Request<'_>) -> Result<u64, Stop> {
        let stack = self.stack(request.stack)?;
        let mut head = u64::from(KIND_ACQUIRE);
        if request.zeroed {
            head |= HEAD_ZEROED;
        }
        if request.grown_from.is_some() {
            head |= HEAD_GROWN;
        }
        self.event(head, thread)?;
        self.number(u64::from(stack));
        self.number(request.bytes as u64);
        if let Some(bytes) = request.grown_from {
            self.number(bytes as u64);
        }
        self.id += 1;
        Ok(self.id)
    }

    pub(super) fn release(&mut self, thread: u32, id: u64) -> Result<(), Stop> {
        self.event(u64::from(KIND_RELEASE), thread)?;
        self.number((self.id + 1).saturating_sub(id));
        Ok(())
    }

    pub(super) fn resize(&mut self, thread: u32, id: u64, bytes: usize) -> Result<(), Stop> {
        self.event(u64::from(KIND_RESIZE), thread)?;
        self.number((self.id + 1).saturating_sub(id));
        self.number(bytes as u64);
        Ok(())
    }

    /// Ends the recording, closes the file, and gives it its name.
    #[inline(never)]
    pub(super) fn end(&mut self, reason: Option<Stop>) {
        let Some(_) = self.settings.take() else { return };
        if self.process != system::process() {
            self.output.close();
            return;
        }
        if matches!(reason, None | Some(Stop::Restricted)) && self.modules.is_stale() {
            // The program may have been too short for the next look.
            self.read_modules(self.at_ns);
        }
        let written = match reason {
            None => self.flush_as(STOPPED),
            // The program continues: its recording has no end.
            Some(Stop::Restricted) => self.flush(),
            Some(Stop::Limit) => self.flush_as(LIMIT),
            // A file that could not be written has no end either.
            Some(_) => Ok(()),
        };
        if let Some(reason) = reason.or(written.err()) {
            self.output.say("the recording stops, the program continues", reason);
        }
        self.output.finish();
    }

    /// Gives a number to a thread.
    pub(super) fn take_number(&mut self) -> u32 {
        for (word, at) in self.numbers.iter_mut().zip(0_u32..) {
            let free = word.trailing_ones();
            if free < u64::BITS {
                *word |= 1 << free;
                return at * u64::BITS + free;
            }
        }
        // More threads than that share the last one.
        NUMBERS as u32 - 1
    }

    /// Takes back the number of a thread that ends.
    pub(super) fn give_number_back(&mut self, number: u32) {
        if let Some(word) = self.numbers.get_mut((number / u64::BITS) as usize) {
            *word &= !(1 << (number % u64::BITS));
        }
    }

    /// Returns the nanoseconds since the beginning, after the last event.
    fn now(&self) -> u64 {
        system::now_ns().saturating_sub(self.began_ns).clamp(self.at_ns, MAX_TIME_NS)
    }

    /// Writes the head of an event.
    fn event(&mut self, kind: u64, thread: u32) -> Result<(), Stop> {
        let at_ns = self.now();
        if self.used + 2 * RECORD_BYTES > self.block.len() || at_ns - self.flushed_ns >= FLUSH_NS {
            self.flush()?;
            self.flushed_ns = at_ns;
            if self.modules.is_due(at_ns) {
                self.read_modules(at_ns);
            }
        }
        // No bit is lost: a time leaves the two top bits free, and a step of 2^58 ns is nine years.
        let mut head = kind | (at_ns - self.at_ns) << HEAD_BITS;
        if thread != self.thread {
            head |= HEAD_OTHER_THREAD;
        }
        self.number(head);
        if thread != self.thread {
            self.number(u64::from(thread));
        }
        (self.at_ns, self.thread) = (at_ns, thread);
        Ok(())
    }

    /// Returns the number of a stack, which is in the file from then on.
    fn stack(&mut self, stack: &Stack) -> Result<u32, Stop> {
        if self.modules.take_unloaded() {
            self.read_modules(self.at_ns);
        }
        match self.stacks.find(stack) {
            Known::Old(number) => Ok(number),
            Known::Full => Ok(0),
            Known::New(number) => {
                self.modules.need(stack.addresses());
                if self.modules.is_due(self.at_ns) {
                    self.read_modules(self.at_ns);
                }
                self.room()?;
                self.number(u64::from(KIND_STACK));
                self.number(stack.addresses().len() as u64);
                for address in stack.addresses() {
                    self.number(*address);
                }
                Ok(number)
            }
        }
    }

    /// Writes code that is new. If some is gone, other code may come to its addresses: stacks that
    /// look alike are others from now on.
    fn read_modules(&mut self, now_ns: u64) {
        let Self { modules, block, used, output, .. } = self;
        let gone = modules.read(now_ns, |code| {
            let mut end = Block { bytes: block, used };
            if end.is_full() && end.write(output).is_err() {
                // Whatever it was, the next block meets it again.
                return;
            }
            end.module(code);
        });
        if gone {
            self.stacks.forget();
        }
    }

    fn room(&mut self) -> Result<(), Stop> {
        let block = Block { bytes: &mut self.block, used: &mut self.used };
        if block.is_full() { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Stop> {
        self.flush_as(GOES_ON)
    }

    fn flush_as(&mut self, state: u64) -> Result<(), Stop> {
        // ORDER: Relaxed: counts.
        let [lost, forks] = [&LOST, &FORKS].map(|count| count.load(Ordering::Relaxed));
        let ([processor, faults, peak, children], before) = (system::usage(), self.before);
        let [processor, faults, children] =
            [(processor, before[0]), (faults, before[1]), (children, before[3])]
                .map(|(now, then)| now.saturating_sub(then));
        let passed = if state == GOES_ON { 0 } else { self.now() - self.at_ns };
        let head = u64::from(KIND_STATE) | passed << HEAD_BITS;
        for number in [head, lost, state, processor, faults, peak, forks, children] {
            self.number(number);
        }
        let reserve = if state == GOES_ON { LAST_BLOCK_BYTES } else { 0 };
        if !self.output.has_room(BLOCK_HEAD_BYTES + self.used, reserve) && state == GOES_ON {
            // What is in it goes; the end has its place.
            self.used = 0;
            return Err(Stop::Limit);
        }
        // A handler that forked here would leave two processes that write the same block.
        let _masked = system::SignalsMasked::new();
        if self.process != system::process() {
            // A child that a signal's handler forked amid the recorder: this is not its file.
            return Err(Stop::System(libc::EBADF));
        }
        Block { bytes: &mut self.block, used: &mut self.used }.write(&mut self.output)
    }

    fn number(&mut self, number: u64) {
        Block { bytes: &mut self.block, used: &mut self.used }.number(number);
    }

    fn text(&mut self, text: &[u8]) {
        Block { bytes: &mut self.block, used: &mut self.used }.text(text);
    }
}

/// A block in the making.
struct Block<'a> {
    bytes: &'a mut [u8],
    used: &'a mut usize,
}

impl Block<'_> {
    /// Returns whether there may be no room for a record and the state behind it.
    fn is_full(&self) -> bool {
        *self.used + 2 * RECORD_BYTES > self.bytes.len()
    }

    fn byte(&mut self, byte: u8) {
        // Always there: records begin where there is room for one.
        if let Some(place) = self.bytes.get_mut(BLOCK_HEAD_BYTES + *self.used) {
            *place = byte;
            *self.used += 1;
        }
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    /// Writes a text. A path need not be one: its other characters become question marks then.
    fn text(&mut self, text: &[u8]) {
        let is_text = core::str::from_utf8(text).is_ok();
        self.number(text.len() as u64);
        for byte in text {
            self.byte(if is_text || byte.is_ascii() { *byte } else { b'?' });
        }
    }

    fn module(&mut self, code: &Code<'_>) {
        let numbers = [u64::from(KIND_MODULE), code.start, code.bytes, code.file_offset, code.file_address];
        for number in numbers {
            self.number(number);
        }
        self.text(code.build_id);
        self.text(code.path);
    }

    /// Writes the block into the file, and begins the next.
    fn write(&mut self, output: &mut Output) -> Result<(), Stop> {
        let used = core::mem::take(self.used);
        let Some((head, payload)) = self.bytes.split_at_mut_checked(BLOCK_HEAD_BYTES) else { return Ok(()) };
        let Some(payload) = payload.get(..used).filter(|payload| !payload.is_empty()) else { return Ok(()) };
        let numbers = (used as u32).to_le_bytes().into_iter().chain(format::crc32(payload).to_le_bytes());
        for (place, byte) in head.iter_mut().zip(numbers) {
            *place = byte;
        }
        output.write(self.bytes.get(..BLOCK_HEAD_BYTES + used).unwrap_or_default())
    }
}

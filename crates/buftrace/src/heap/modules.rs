//! The code in the process' memory: which file each address is of, so that it can be given a name
//! later.
//!
//! `/proc/self/maps` is read instead of asking the dynamic linker, whose lock may be taken by a
//! thread that waits for the recorder.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};

use super::output::PATH_BYTES;
use super::system::File;

/// The number of pieces of code that can be known.
const MAX_MODULES: usize = 1024;
/// While addresses are of no known code, the map is read again at most this often.
const AGAIN_NS: u64 = 1_000_000_000;
/// What a line of the map has in front of the path, and the path.
const LINE_BYTES: usize = 128 + PATH_BYTES;
/// A build id is 20 bytes for most linkers.
const MAX_ID_BYTES: usize = 64;

/// A piece of code that was found.
pub(super) struct Code<'a> {
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) file_offset: u64,
    pub(super) file_address: u64,
    /// Hexadecimal digits.
    pub(super) build_id: &'a [u8],
    pub(super) path: &'a [u8],
}

/// Whether a library was unloaded since the map was read.
static UNLOADED: AtomicBool = AtomicBool::new(false);

/// Notes that a library was unloaded: another one may come to its addresses.
pub(super) fn unloaded() {
    // ORDER: Relaxed: a library that is loaded later by another thread is known to it by an order
    // of the program's, which makes this visible too.
    UNLOADED.store(true, Ordering::Relaxed);
}

/// A piece of code that is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: u64,
    end: u64,
    /// Of its file and its place there.
    hash: u64,
    /// The last look at the map that found it.
    look: u64,
}

/// The code that is in the file. All fields begin as zeros.
pub(super) struct Modules {
    ranges: [Range; MAX_MODULES],
    used: usize,
    /// The number of looks at the map.
    look: u64,
    /// An address was of none of them.
    stale: bool,
    /// The last look found new code, or missed some.
    changed: bool,
    read_ns: u64,
    /// Here and not on the thread's stack, of which a signal's handler may have little.
    buffer: [u8; LINE_BYTES],
    path: [u8; PATH_BYTES],
}

impl Modules {
    /// Notes addresses that will need names.
    pub(super) fn need(&mut self, addresses: &[u64]) {
        let known = self.ranges.get(..self.used).unwrap_or_default();
        let has = |address: &u64| known.iter().any(|range| (range.start..range.end).contains(address));
        self.stale |= !addresses.iter().all(has);
    }

    /// Returns whether to read the map. It is read at once as long as that finds changes. Code that
    /// is in no file, such as a compiler's at run time, is looked for once a second.
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.stale && (self.changed || now_ns.saturating_sub(self.read_ns) >= AGAIN_NS)
    }

    /// Returns whether a library was unloaded since this was asked last.
    pub(super) fn take_unloaded(&mut self) -> bool {
        // ORDER: Relaxed: as in `unloaded`.
        UNLOADED.load(Ordering::Relaxed) && UNLOADED.swap(false, Ordering::Relaxed)
    }

    /// Returns whether an address was of no known code.
    pub(super) fn is_stale(&self) -> bool {
        self.stale
    }

    pub(super) fn clear(&mut self) {
        (self.used, self.stale, self.changed) = (0, true, true);
    }

    /// Reads the map, and calls `found` for each new piece of code. Returns whether some code is
    /// gone.
    #[inline(never)]
    pub(super) fn read(&mut self, now_ns: u64, mut found: impl FnMut(&Code<'_>)) -> bool {
        (self.stale, self.read_ns) = (false, now_ns);
        let Some(map) = File::open(c"/proc/self/maps") else { return false };
        let mut any = false;
        self.look += 1;
        let Self { ranges, used, look, buffer, path, .. } = self;
        let mut filled = 0;
        loop {
            let read = map.read(buffer.get_mut(filled..).unwrap_or_default());
            filled += read;
            let mut start = 0;
            while let Some(rest) = buffer.get(start..filled)
                && let Some(length) = rest.iter().position(|byte| *byte == b'\n')
            {
                if let Some(line) = rest.get(..length).and_then(Line::parse)
                    && see(ranges, used, line.range(*look))
                {
                    any = true;
                    line.tell(path, &mut found);
                }
                start += length + 1;
            }
            if read == 0 {
                break;
            }
            // A line that does not fit is dropped.
            let start = if start == 0 && filled == LINE_BYTES { filled } else { start };
            buffer.copy_within(start..filled, 0);
            filled -= start;
        }
        map.close();
        let (before, mut at) = (self.used, 0);
        while let Some(range) = self.ranges.get(at).filter(|_| at < self.used) {
            if range.look == self.look {
                at += 1;
            } else {
                self.used -= 1;
                self.ranges.swap(at, self.used);
            }
        }
        let is_gone = self.used < before;
        self.changed = any | is_gone;
        is_gone
    }
}

/// Notes that a look found a piece of code. Returns whether it is new, and there was a place for
/// it.
fn see(ranges: &mut [Range], used: &mut usize, range: Range) -> bool {
    let same = |known: &Range| Range { look: range.look, ..*known } == range;
    let known = ranges.get(..*used).and_then(|known| known.iter().position(same));
    let Some(place) = ranges.get_mut(known.unwrap_or(*used)) else { return false };
    *place = range;
    *used += usize::from(known.is_none());
    known.is_none()
}

/// A line of the map that is of code.
struct Line<'a> {
    start: u64,
    end: u64,
    offset: u64,
    path: &'a [u8],
}

impl<'a> Line<'a> {
    /// Reads for example `7f0c-7f0e r-xp 00001000 08:01 1234    /usr/lib/libc.so.6`.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut words = line.splitn(6, |byte| *byte == b' ');
        let range = words.next()?;
        let dash = range.iter().position(|byte| *byte == b'-')?;
        let (start, end) = (hexadecimal(range.get(..dash)?)?, hexadecimal(range.get(dash + 1..)?)?);
        let access = words.next()?;
        let offset = hexadecimal(words.next()?)?;
        let (_device, _inode) = (words.next()?, words.next()?);
        let path = words.next()?.trim_ascii_start();
        let is_code = access.get(2) == Some(&b'x') && !path.is_empty() && start < end;
        is_code.then_some(Self { start, end, offset, path })
    }

    fn range(&self, look: u64) -> Range {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        Range { start: self.start, end: self.end, hash: self.path.iter().fold(self.offset, step), look }
    }

    fn tell(&self, path: &mut [u8; PATH_BYTES], found: &mut impl FnMut(&Code<'_>)) {
        let elf = Elf::of(self, path);
        found(&Code {
            start: self.start,
            bytes: self.end - self.start,
            file_offset: self.offset,
            file_address: elf.address,
            build_id: elf.digits.get(..elf.digits_used).unwrap_or_default(),
            path: self.path,
        });
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let text = core::str::from_utf8(digits).ok()?;
    u64::from_str_radix(text, 16).ok()
}

/// What the file of some code says of it.
struct Elf {
    /// The address that the file gives to the start of the code.
    address: u64,
    digits: [u8; 2 * MAX_ID_BYTES],
    digits_used: usize,
}

impl Elf {
    fn of(line: &Line<'_>, path: &mut [u8; PATH_BYTES]) -> Self {
        let mut elf = Self { address: line.offset, digits: [0; 2 * MAX_ID_BYTES], digits_used: 0 };
        path.fill(0);
        if let Some(place) = path.get_mut(..line.path.len()) {
            place.copy_from_slice(line.path);
        }
        if let Ok(path) = CStr::from_bytes_until_nul(path)
            && path.to_bytes().starts_with(b"/")
            && let Some(file) = File::open(path)
        {
            // Any failure leaves what was found before it.
            let _ = elf.read(file, line.offset);
            file.close();
        }
        elf
    }

    /// Reads the program headers of a file of this processor's byte order.
    fn read(&mut self, file: File, offset: u64) -> Option<()> {
        const LOAD: u64 = 1;
        const NOTE: u64 = 4;
        const EXECUTABLE: u64 = 1;
        let mut head = [0; 64];
        file.read_at(&mut head, 0);
        let is_wide = match head.get(..5)? {
            b"\x7fELF\x02" => true,
            b"\x7fELF\x01" => false,
            _ => return None,
        };
        let word = if is_wide { 8 } else { 4 };
        let (table_at, sizes_at) = if is_wide { (32, 54) } else { (28, 42) };
        let table = number(&head, table_at, word)?;
        let (each, count) = (number(&head, sizes_at, 2)?, number(&head, sizes_at + 2, 2)?);
        for at in 0..count.min(64) {
            let mut part = [0; 56];
            if file.read_at(&mut part, table.checked_add(at * each)?) < if is_wide { 56 } else { 32 } {
                return None;
            }
            let kind = number(&part, 0, 4)?;
            let flags = number(&part, if is_wide { 4 } else { 24 }, 4)?;
            // The start in the file, the address, another address, and the bytes in the file.
            let [start, address, _, bytes] =
                [0, 1, 2, 3].map(|field| number(&part, if is_wide { 8 } else { 4 } + field * word, word));
            let (start, address, bytes) = (start?, address?, bytes?);
            // A mapping begins at the page in front of its part.
            let is_here = offset <= start && start < offset.checked_add(1 << 16)?;
            if kind == LOAD && is_here && flags & EXECUTABLE != 0 {
                self.address = address.wrapping_sub(start - offset);
            }
            if kind == NOTE && self.digits_used == 0 {
                self.note(file, start, bytes);
            }
        }
        Some(())
    }

    /// Reads notes, of which one may be the build id.
    fn note(&mut self, file: File, start: u64, bytes: u64) -> Option<()> {
        const BUILD_ID: u64 = 3;
        let mut notes = [0; 1024];
        let read = file.read_at(&mut notes, start).min(usize::try_from(bytes).ok()?);
        let mut rest = notes.get(..read)?;
        loop {
            let (name, length) = (number(rest, 0, 4)? as usize, number(rest, 4, 4)? as usize);
            let id_at = 12 + name.checked_next_multiple_of(4)?;
            let id = rest.get(id_at..id_at.checked_add(length)?)?;
            if number(rest, 8, 4)? == BUILD_ID && rest.get(12..16) == Some(b"GNU\0") {
                for (place, byte) in self.digits.chunks_mut(2).zip(id) {
                    let digit = |value: u8| b"0123456789abcdef".get(usize::from(value)).copied();
                    place.copy_from_slice(&[digit(byte >> 4)?, digit(byte & 15)?]);
                    self.digits_used += 2;
                }
                return Some(());
            }
            rest = rest.get(id_at.checked_add(length.checked_next_multiple_of(4)?)?..)?;
        }
    }
}

/// Returns the number of `bytes` bytes at `at`, in this processor's byte order.
fn number(from: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let part = from.get(at..at.checked_add(bytes)?)?;
    let step = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    Some(if cfg!(target_endian = "big") {
        part.iter().fold(0, step)
    } else {
        part.iter().rev().fold(0, step)
    })
}

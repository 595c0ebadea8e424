//! Reads the file of a heap recording, whatever is in it.

use super::format::{self, BLOCK_HEAD_BYTES, MAGIC, MAX_BLOCK_BYTES, MAX_FRAMES, VERSION};
use super::{Ending, Info, Module, Object, Profile, Resize, Usage, Whole};
use crate::format::Reader;
use crate::{DecodeError, Fault, MAX_BYTES, MAX_TIME_NS, TraceError};

impl Profile {
    /// Reads a heap recording from the bytes of a file.
    ///
    /// A file that ends too early, or has a damaged block, is read up to that point:
    /// [`ending`](Self::ending) reports it.
    ///
    /// Cost: memory for its contents, at most a hundred times the length of `file`, whatever it
    /// claims.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if `file` does not contain a complete first block, or if a block with a
    /// correct checksum breaks the rules of the [format](mod@crate::profile::format). No recorder
    /// writes such a block.
    ///
    /// # Panics
    ///
    /// Never.
    ///
    /// ```
    /// use buftrace::{Fault, Profile};
    ///
    /// let error = Profile::decode(b"no recording").unwrap_err();
    /// assert_eq!((error.offset, error.fault), (0, Fault::NotATrace));
    /// ```
    pub fn decode(file: &[u8]) -> Result<Self, DecodeError> {
        Self::decode_first(file, usize::MAX)
    }

    /// Reads a heap recording as [`decode`](Self::decode) does, and keeps the first `most_objects`
    /// of its objects and reallocations, as if the recording had ended with them. Lost events,
    /// ending and [`whole`](Self::whole) describe the whole file.
    ///
    /// Cost: memory for those objects, for their events, for the call stacks of the file, and four
    /// bytes for each object of the file.
    ///
    /// # Errors
    ///
    /// The errors are those of [`decode`](Self::decode).
    ///
    /// ```no_run
    /// let profile = buftrace::Profile::decode_first(&std::fs::read("app.heap")?, 1 << 18)?;
    /// assert!(profile.objects().len() <= 1 << 18);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decode_first(file: &[u8], most_objects: usize) -> Result<Self, DecodeError> {
        let mut reader = Reader { file, offset: 0 };
        if reader.take(MAGIC.len()).ok() != Some(&MAGIC[..]) {
            return Err(DecodeError { offset: 0, fault: Fault::NotATrace });
        }
        let version = reader.byte()?;
        if version != VERSION {
            return Err(reader.fault_at(MAGIC.len(), Fault::UnknownVersion { version }));
        }
        let flags = reader.byte()?;
        if flags != 0 {
            return Err(reader.fault_at(MAGIC.len() + 1, Fault::UnknownFlags { flags }));
        }
        let mut decoder = Decoder::new(most_objects);
        while reader.offset < file.len() {
            match next_block(&mut reader) {
                Ok(end) => decoder.block(&mut Reader { file: &file[..end], offset: reader.offset })?,
                Err(error) if decoder.started => {
                    decoder.profile.ending = Ending::Torn(error);
                    return Ok(decoder.finish());
                }
                Err(error) => return Err(error),
            }
            reader.offset += decoder.read;
        }
        if !decoder.started {
            return Err(reader.fault(Fault::Truncated));
        }
        Ok(decoder.finish())
    }
}

/// Reads the head of a block, and returns where its payload ends. It begins where `reader` is then.
/// After a fault, `reader` is where it was.
fn next_block(reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
    let start = reader.offset;
    let fault = |fault| DecodeError { offset: start, fault };
    let whole = |reader: &mut Reader<'_>| {
        let head = reader.take(BLOCK_HEAD_BYTES)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (length, checksum) = (word(0) as usize, word(4));
        if length == 0 || length > MAX_BLOCK_BYTES {
            return Err(fault(Fault::BadNumber));
        }
        let payload = reader.take(length).map_err(|_| fault(Fault::Truncated))?;
        if format::crc32(payload) != checksum {
            return Err(fault(Fault::BadChecksum));
        }
        Ok(length)
    };
    match whole(reader) {
        Ok(length) => {
            reader.offset -= length;
            Ok(reader.offset + length)
        }
        Err(error) => {
            reader.offset = start;
            Err(DecodeError { offset: start, ..error })
        }
    }
}

/// What was read so far, and what the next record is relative to.
struct Decoder {
    profile: Profile,
    started: bool,
    ended: bool,
    rate: Option<u64>,
    thread: u32,
    /// When the last event was.
    at_ns: u64,
    /// By object so far: its bytes and one more, and 0 when it was released.
    sizes: Vec<u32>,
    /// Objects and bytes that are out, the most of either so far, and in the part that is kept.
    out: [u64; 2],
    most_out: [u64; 2],
    most_kept: [u64; 2],
    most_objects: usize,
    /// The length of the last block's payload.
    read: usize,
}

impl Decoder {
    fn new(most_objects: usize) -> Self {
        let profile = Profile {
            info: Info::default(),
            modules: Vec::new(),
            stack_ends: vec![0],
            stack_modules: vec![0],
            addresses: Vec::new(),
            objects: Vec::new(),
            resizes: Vec::new(),
            duration_ns: 0,
            lost: 0,
            usage: Usage::default(),
            ending: Ending::Open,
            is_cut: false,
            whole: Whole::default(),
        };
        Self {
            profile,
            started: false,
            ended: false,
            rate: None,
            thread: 0,
            at_ns: 0,
            sizes: Vec::new(),
            out: [0; 2],
            most_out: [0; 2],
            most_kept: [0; 2],
            most_objects,
            read: 0,
        }
    }

    fn finish(mut self) -> Profile {
        // A file has far fewer objects than its length allows for, and this memory is kept.
        self.profile.objects.shrink_to_fit();
        let times = |of: usize| self.most_out[of] as f64 / self.most_kept[of].max(1) as f64;
        self.profile.whole = Whole {
            objects: self.sizes.len() as u64,
            duration_ns: self.at_ns,
            peak_growth: if self.profile.is_cut { [times(0), times(1)] } else { [1.0; 2] },
        };
        self.profile
    }

    fn block(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let start = reader.offset;
        while reader.offset < reader.file.len() {
            self.record(reader)?;
        }
        self.read = reader.offset - start;
        Ok(())
    }

    fn record(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let at = reader.offset;
        let head = reader.number()?;
        let kind = (head & format::KIND_MASK) as u8;
        let is_event = kind >= format::KIND_ACQUIRE;
        let expected = if self.started { kind != format::KIND_START } else { kind == format::KIND_START };
        if self.ended || !expected || (!is_event && head != u64::from(kind)) {
            return Err(reader.fault_at(at, Fault::BadRecord { kind }));
        }
        if is_event {
            self.moment(at, head, reader)?;
        }
        match kind {
            format::KIND_START => self.start(reader),
            format::KIND_RATE => {
                self.rate = Some(reader.number()?);
                Ok(())
            }
            format::KIND_MODULE => self.module(reader),
            format::KIND_STACK => self.stack(reader),
            format::KIND_ACQUIRE => self.acquire(at, head, reader),
            format::KIND_RELEASE => self.release(head, reader),
            format::KIND_RESIZE => self.resize(head, reader),
            format::KIND_STATE => self.state(head, reader),
            _ => Err(reader.fault_at(at, Fault::BadRecord { kind })),
        }
    }

    /// Reads when and on which thread an event was.
    fn moment(&mut self, at: usize, head: u64, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        // Cannot wrap: both are under 2^62.
        let at_ns = self.at_ns + (head >> format::HEAD_BITS);
        if at_ns > MAX_TIME_NS {
            return Err(reader.fault_at(at, Fault::Trace(TraceError::TimeTooLate { at_ns })));
        }
        self.at_ns = at_ns;
        if !self.profile.is_cut {
            self.profile.duration_ns = at_ns;
        }
        if head & format::HEAD_OTHER_THREAD != 0 {
            self.thread = reader.small_number()?;
        }
        Ok(())
    }

    fn start(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        self.profile.info = Info {
            made_by: reader.text()?,
            program: reader.text()?,
            pid: reader.number()?,
            started_at: reader.number()?,
            min_bytes: reader.number()?,
        };
        self.started = true;
        Ok(())
    }

    fn module(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let module = Module {
            start: reader.number()?,
            bytes: reader.number()?,
            file_offset: reader.number()?,
            file_address: reader.number()?,
            build_id: reader.text()?,
            path: reader.text()?,
        };
        self.profile.modules.push(module);
        Ok(())
    }

    fn stack(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let at = reader.offset;
        let frames = reader.number()?;
        if frames > MAX_FRAMES as u64 {
            return Err(reader.fault_at(at, Fault::BadNumber));
        }
        for _ in 0..frames {
            let address = reader.number()?;
            self.profile.addresses.push(address);
        }
        self.profile.stack_ends.push(self.profile.addresses.len());
        self.profile.stack_modules.push(self.profile.modules.len());
        Ok(())
    }

    fn acquire(&mut self, at: usize, head: u64, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let Some(rate) = self.rate else {
            return Err(reader.fault_at(at, Fault::BadRecord { kind: format::KIND_ACQUIRE }));
        };
        let at = reader.offset;
        let stack = reader.small_number()?;
        if stack as usize >= self.profile.stack_ends.len() {
            return Err(reader.fault_at(at, Fault::BadReference));
        }
        let bytes = size(reader)?;
        let grown_from = if head & format::HEAD_GROWN == 0 { None } else { Some(size(reader)?) };
        let is_cut = self.cut();
        self.sizes.push(0);
        self.has(self.sizes.len() - 1, Some(bytes));
        if is_cut {
            return Ok(());
        }
        self.profile.objects.push(Object {
            at_ns: self.at_ns,
            thread: self.thread,
            stack,
            bytes,
            largest: bytes,
            grown_from,
            resizes: 0,
            zeroed: head & format::HEAD_ZEROED != 0,
            released: None,
            rate,
        });
        Ok(())
    }

    fn release(&mut self, head: u64, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        self.no_flags(head, reader)?;
        let released = (self.at_ns, self.thread);
        let number = self.object(reader)?;
        self.has(number, None);
        if !self.profile.is_cut {
            self.profile.objects[number].released = Some(released);
        }
        Ok(())
    }

    fn resize(&mut self, head: u64, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        self.no_flags(head, reader)?;
        let number = self.object(reader)?;
        let bytes = size(reader)?;
        let is_cut = self.cut();
        self.has(number, Some(bytes));
        if is_cut {
            return Ok(());
        }
        let object = &mut self.profile.objects[number];
        object.largest = object.largest.max(bytes);
        object.resizes = object.resizes.saturating_add(1);
        let (at_ns, thread) = (self.at_ns, self.thread);
        self.profile.resizes.push(Resize { object: number, at_ns, thread, bytes });
        Ok(())
    }

    /// Returns whether what comes now is left out: as many objects and reallocations are kept as
    /// may be.
    fn cut(&mut self) -> bool {
        self.profile.is_cut |= self.profile.objects.len() + self.profile.resizes.len() >= self.most_objects;
        self.profile.is_cut
    }

    fn no_flags(&self, head: u64, reader: &Reader<'_>) -> Result<(), DecodeError> {
        let flags = format::HEAD_ZEROED | format::HEAD_GROWN;
        if head & flags == 0 {
            return Ok(());
        }
        Err(reader.fault(Fault::UnknownFlags { flags: (head & flags) as u8 }))
    }

    /// Notes how many bytes an object has from now on; `None` when it is released.
    fn has(&mut self, number: usize, bytes: Option<u64>) {
        let size = bytes.map_or(0, |bytes| bytes.min(u64::from(u32::MAX - 1)) as u32 + 1);
        let before = core::mem::replace(&mut self.sizes[number], size);
        for (size, sign) in [(before, u64::MAX), (size, 1)].into_iter().filter(|(size, _)| *size > 0) {
            self.out[0] = self.out[0].wrapping_add(sign);
            self.out[1] = self.out[1].wrapping_add(u64::from(size - 1).wrapping_mul(sign));
        }
        for (most, out) in self.most_out.iter_mut().zip(self.out) {
            *most = out.max(*most);
        }
        if !self.profile.is_cut {
            self.most_kept = self.most_out;
        }
    }

    /// Reads the number of an object that was not released.
    fn object(&self, reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
        let at = reader.offset;
        let distance = usize::try_from(reader.number()?).ok();
        let number = distance.and_then(|distance| self.sizes.len().checked_sub(distance));
        let is_out = |number: &usize| self.sizes.get(*number).is_some_and(|size| *size > 0);
        number.filter(is_out).ok_or_else(|| reader.fault_at(at, Fault::BadReference))
    }

    fn state(&mut self, head: u64, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        self.no_flags(head, reader)?;
        self.profile.lost = reader.number()?;
        let at = reader.offset;
        self.profile.ending = match reader.number()? {
            format::GOES_ON => Ending::Open,
            format::STOPPED => Ending::Stopped,
            format::LIMIT => Ending::Limit,
            _ => return Err(reader.fault_at(at, Fault::BadNumber)),
        };
        self.ended = self.profile.ending != Ending::Open;
        let usage = Usage {
            processor_ns: reader.number()?,
            faults: reader.number()?,
            peak_bytes: reader.number()?,
            forks: reader.number()?,
            children_ns: reader.number()?,
        };
        if !self.profile.is_cut {
            self.profile.usage = usage;
        }
        Ok(())
    }
}

fn size(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    let at = reader.offset;
    let bytes = reader.number()?;
    if bytes > MAX_BYTES {
        return Err(reader.fault_at(at, Fault::Trace(TraceError::TooLarge { bytes })));
    }
    Ok(bytes)
}

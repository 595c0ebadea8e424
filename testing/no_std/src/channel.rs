//! A channel: its ends in one place, and what both ends of one in two places do.

use bufmirror::{StaticChannel, StaticConsumer, StaticProducer};

use crate::Checked;
use crate::pattern::{self, Numbers};

/// Tells the bytes of a channel from those of buffers.
const SEED: u32 = 9;

/// Writes into a channel, a random number of bytes at a time.
#[derive(Debug)]
pub struct Writer<'a> {
    producer: StaticProducer<'a>,
    numbers: Numbers,
    written: usize,
}

impl<'a> Writer<'a> {
    /// Writes into `producer`.
    #[must_use]
    pub fn new(producer: StaticProducer<'a>) -> Self {
        Self { producer, numbers: Numbers::new(3), written: 0 }
    }

    /// Writes once. Returns whether there was room for all that it had.
    pub fn step(&mut self) -> bool {
        let n = self.numbers.below(self.producer.capacity()) + 1;
        let room = n.min(self.producer.spare_capacity());
        let Ok(bytes) = self.producer.reserve(room) else { return false };
        let start = self.written;
        bytes.iter_mut().enumerate().for_each(|(at, byte)| *byte = pattern::byte(SEED, start + at));
        self.producer.commit(room);
        self.written += room;
        room == n
    }
}

/// Reads from a channel, and compares with what a [`Writer`] writes.
#[derive(Debug)]
pub struct Reader<'a> {
    consumer: StaticConsumer<'a>,
    numbers: Numbers,
    /// The bytes that were read and right.
    pub read: usize,
}

impl<'a> Reader<'a> {
    /// Reads from `consumer`.
    #[must_use]
    pub fn new(consumer: StaticConsumer<'a>) -> Self {
        Self { consumer, numbers: Numbers::new(4), read: 0 }
    }

    /// Looks at all bytes, and takes some of them. Returns whether there were any.
    pub fn step(&mut self) -> Checked<bool> {
        let filled = self.consumer.peek();
        check!(pattern::is(filled, SEED, self.read));
        let len = filled.len();
        let taken = self.numbers.below(len + 1);
        self.consumer.consume(taken);
        self.read += taken;
        Ok(len > 0)
    }
}

/// Both ends in one place, many times around.
pub(crate) fn around() -> Checked {
    const BYTES: usize = 61;
    let mut channel = StaticChannel::<BYTES>::new();
    let (producer, consumer) = channel.ends();
    let (mut writer, mut reader) = (Writer::new(producer), Reader::new(consumer));
    let (mut full, mut empty) = (0, 0);
    while reader.read < 100 * BYTES {
        full += u32::from(!writer.step());
        empty += u32::from(!reader.step()?);
        reader.step()?;
    }
    check!(full > 0 && empty == 0);
    drop(writer);
    check!(reader.consumer.is_closed());
    Ok(())
}

//! What one writes without a pool.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::{Plan, Unsupported};
use crate::harness::serve::{Frames, Messages, OpenFrame, Pool, Stream};

pub(super) fn engine() -> Engine {
    Engine::new(
        "vec",
        Kind::Control,
        "`Vec::with_capacity` on the system's allocator, not zeroed. A frame has the capacity of the largest from the start, or, \
         in `growing`, that of one step, and grows. A stream is a `VecDeque`: `extend` and `read_exact`. Messages are vectors in a `VecDeque` behind a lock",
    )
    .whole::<VecPool>()
    .sends::<VecPool>()
    .threads_each::<VecPool>()
    .frames::<VecFrames>()
    .streams::<VecDeque<u8>>()
    .messages::<Vectors>()
}

/// A vector each time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VecPool;

impl Pool for VecPool {
    type Buf = Vec<u8>;

    fn build(_plan: &Plan) -> Result<Self, Unsupported> {
        Ok(Self)
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> Vec<u8> {
        Vec::with_capacity(bytes)
    }
}

impl Stream for VecDeque<u8> {
    fn build(bytes: usize) -> Result<Self, Unsupported> {
        Ok(Self::with_capacity(bytes))
    }

    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        self.extend(bytes);
    }

    #[inline(always)]
    fn read(&mut self, into: &mut [u8]) {
        self.read_exact(into).expect("the workload reads what it wrote");
    }
}

/// A vector that is appended to.
pub(crate) struct VecFrames {
    first_bytes: usize,
}

impl Frames for VecFrames {
    type Frame = Vec<u8>;
    type Open<'a> = Open;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        Ok(Self { first_bytes: plan.first_bytes })
    }

    #[inline(always)]
    fn open(&mut self) -> Open {
        Open(Vec::with_capacity(self.first_bytes))
    }
}

/// A frame being filled.
pub(crate) struct Open(Vec<u8>);

impl OpenFrame for Open {
    type Frame = Vec<u8>;

    #[inline(always)]
    fn append(&mut self, chunk: &[u8]) {
        self.0.extend_from_slice(chunk);
    }

    #[inline(always)]
    fn detach(self) -> Vec<u8> {
        self.0
    }
}

/// Messages, each a vector of its own, with a limit on their bytes together.
#[derive(Debug)]
pub(crate) struct Vectors {
    queue: Mutex<Waiting>,
    capacity: usize,
    not_empty: Condvar,
    not_full: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
}

/// What a message counts beyond its bytes.
const EXTRA_BYTES: usize = size_of::<Vec<u8>>();

impl Messages for Vectors {
    fn build(bytes: usize, _mean: usize) -> Result<Self, Unsupported> {
        Ok(Self {
            queue: Mutex::default(),
            capacity: bytes,
            not_empty: Condvar::new(),
            not_full: Condvar::new(),
        })
    }

    fn send(&self, message: &[u8]) {
        let bytes = message.len() + EXTRA_BYTES;
        let message = message.to_vec();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        while queue.bytes + bytes > self.capacity {
            queue = self.not_full.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.bytes += bytes;
        queue.messages.push_back(message);
        drop(queue);
        self.not_empty.notify_one();
    }

    fn receive(&self, into: &mut [u8]) -> usize {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let message = loop {
            if let Some(message) = queue.messages.pop_front() {
                break message;
            }
            queue = self.not_empty.wait(queue).unwrap_or_else(PoisonError::into_inner);
        };
        queue.bytes -= message.len() + EXTRA_BYTES;
        drop(queue);
        self.not_full.notify_one();
        into[..message.len()].copy_from_slice(&message);
        message.len()
    }

    fn send_many(&self, messages: &[&[u8]]) {
        let messages: Vec<_> = messages.iter().map(|message| message.to_vec()).collect();
        let bytes: usize = messages.iter().map(|message| message.len() + EXTRA_BYTES).sum();
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        while queue.bytes + bytes > self.capacity {
            queue = self.not_full.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.bytes += bytes;
        queue.messages.extend(messages);
        drop(queue);
        self.not_empty.notify_one();
    }

    fn receive_many(&self, max: usize, mut take: impl FnMut(&[u8])) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        while queue.messages.is_empty() {
            queue = self.not_empty.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let some = max.min(queue.messages.len());
        let messages: Vec<_> = queue.messages.drain(..some).collect();
        queue.bytes -= messages.iter().map(|message| message.len() + EXTRA_BYTES).sum::<usize>();
        drop(queue);
        self.not_full.notify_all();
        messages.iter().for_each(|message| take(message));
    }
}

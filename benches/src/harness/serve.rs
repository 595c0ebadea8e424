//! What an engine implements: [`Pool`], [`Frames`] or both, or what carries bytes. The workloads
//! are generic over these traits, so nothing is called through a pointer inside a timed loop.

use crate::harness::block::Block;
use crate::harness::plan::{Plan, Unsupported};

/// Hands out whole buffers. Owned by one thread; what it hands out may borrow a leaked pool, never
/// the value itself.
pub trait Pool: Sized + 'static {
    /// What it hands out. Dropping it is the release.
    type Buf: Block;

    /// Builds it for what the workload will ask. Not timed.
    ///
    /// # Errors
    ///
    /// When this engine cannot serve such a plan.
    fn build(plan: &Plan) -> Result<Self, Unsupported>;

    /// Takes a buffer of at least `bytes` bytes, at least one.
    fn acquire(&mut self, bytes: usize) -> Self::Buf;

    /// How many requests went elsewhere because the pool had nothing; `None` if it does not count.
    fn fallbacks(&self) -> Option<u64> {
        None
    }

    /// Whether it knows which buffers are back. `noop` does not, and is checked for no more than
    /// its workloads need.
    const KEEPS_BOOKS: bool = true;
}

/// Hands out frames: buffers that grow in steps.
pub trait Frames: Sized + 'static {
    /// What a finished frame is. Dropping it is the release.
    type Frame: Block + Send;
    /// The frame that is being filled.
    type Open<'a>: OpenFrame<Frame = Self::Frame>
    where
        Self: 'a;

    /// Builds it for what the workload will ask. Not timed.
    ///
    /// # Errors
    ///
    /// When this engine cannot serve such a plan.
    fn build(plan: &Plan) -> Result<Self, Unsupported>;

    /// Starts a frame.
    fn open(&mut self) -> Self::Open<'_>;

    /// As [`Pool::fallbacks`].
    fn fallbacks(&self) -> Option<u64> {
        None
    }

    /// As [`Pool::KEEPS_BOOKS`].
    const KEEPS_BOOKS: bool = true;
}

/// A frame that is being filled.
pub trait OpenFrame {
    /// What it becomes.
    type Frame;

    /// Appends a chunk.
    fn append(&mut self, chunk: &[u8]);

    /// Finishes the frame.
    fn detach(self) -> Self::Frame;
}

/// Takes bytes in and gives them out in order. Owned by one thread.
pub trait Stream: Sized + 'static {
    /// Builds one that holds `bytes` bytes. Not timed.
    ///
    /// # Errors
    ///
    /// When this engine cannot hold `bytes` bytes.
    fn build(bytes: usize) -> Result<Self, Unsupported>;

    /// Takes all of `bytes`, for which there is room.
    fn write(&mut self, bytes: &[u8]);

    /// Gives the oldest bytes, of which there are as many as `into` has.
    fn read(&mut self, into: &mut [u8]);

    /// Shows the oldest `len` bytes in one piece, and drops them. An engine that cannot lend
    /// them so copies them into `scratch` first, which is as long.
    #[inline(always)]
    fn look<T>(&mut self, len: usize, scratch: &mut [u8], look: impl FnOnce(&[u8]) -> T) -> T {
        let scratch = &mut scratch[..len];
        self.read(scratch);
        look(scratch)
    }

    /// Whether it knows what is in it. `noop` gives what was written last, and is checked for no
    /// more.
    const KEEPS_BOOKS: bool = true;
}

/// Takes bytes from one thread to another.
pub trait Pipe: 'static {
    /// The end that writes.
    type Writer: Send;
    /// The end that reads.
    type Reader: Send;

    /// Builds one that holds `bytes` bytes, about. Not timed.
    ///
    /// # Errors
    ///
    /// When this engine cannot hold `bytes` bytes.
    fn build(bytes: usize) -> Result<(Self::Writer, Self::Reader), Unsupported>;

    /// Writes all of `bytes`, and waits for the reader if it has to.
    fn write(writer: &mut Self::Writer, bytes: &[u8]);

    /// Fills all of `into`, and waits for the writer if it has to.
    fn read(reader: &mut Self::Reader, into: &mut [u8]);
}

/// Carries messages from any thread to any other.
pub trait Messages: Sized + Sync + 'static {
    /// Builds one for about `bytes` bytes of messages at once, of `mean` bytes each. Not timed.
    ///
    /// # Errors
    ///
    /// When this engine cannot hold `bytes` bytes.
    fn build(bytes: usize, mean: usize) -> Result<Self, Unsupported>;

    /// Sends a message, when there is room.
    fn send(&self, message: &[u8]);

    /// Copies the next message into `into`, when there is one; its length.
    fn receive(&self, into: &mut [u8]) -> usize;

    /// Sends these messages, when there is room for all of them.
    fn send_many(&self, messages: &[&[u8]]);

    /// Calls `take` with each message that has come, up to `max` of them, when there is one.
    fn receive_many(&self, max: usize, take: impl FnMut(&[u8]));
}

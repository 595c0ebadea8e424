//! Who takes part, and what each of them has to offer.
//!
//! A contestant is one file in `contestants/` and one line in its registry. It implements [`Pool`], [`Frames`] or both, and
//! says which groups of workloads it can serve with them; for the others it says why not. The workloads are generic over
//! these traits, so nothing is called through a pointer inside a timed loop.

use crate::block::Block;
use crate::case::{Case, Plan};
use crate::cell::Cell;
use crate::workloads;

/// Why a contestant does not serve a case: a sentence for the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported(pub String);

impl<S: Into<String>> From<S> for Unsupported {
    fn from(reason: S) -> Self {
        Self(reason.into())
    }
}

/// What kind of contestant one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A strategy of this workspace.
    Strategy,
    /// A strategy with other settings than those that the plan asks for, where the settings are what is to be seen. It is in
    /// no verdict.
    Setting,
    /// What every strategy is compared with.
    Control,
    /// A published crate that does a similar job.
    Peer,
}

/// Hands out whole buffers. Owned by one thread; what it hands out may borrow a leaked pool, never the value itself.
pub trait Pool: Sized + 'static {
    /// What it hands out. Dropping it is the release.
    type Buf: Block;

    /// Builds it for what the workload will ask. Not timed.
    ///
    /// # Errors
    ///
    /// When this contestant cannot serve such a plan.
    fn build(plan: &Plan) -> Result<Self, Unsupported>;

    /// Takes a buffer of at least `bytes` bytes, at least one.
    fn acquire(&mut self, bytes: usize) -> Self::Buf;

    /// How many requests went elsewhere because the pool had nothing; `None` if it does not count.
    fn fallbacks(&self) -> Option<u64> {
        None
    }

    /// Whether it knows which buffers are back. The floor does not, and is checked for no more than its workloads need.
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
    /// When this contestant cannot serve such a plan.
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

/// The workloads with streams.
pub const STREAMS: &[&str] = &["stream", "parse"];

/// Takes bytes in and gives them out in order. Owned by one thread.
pub trait Stream: Sized + 'static {
    /// Builds one that holds `bytes` bytes. Not timed.
    ///
    /// # Errors
    ///
    /// When this contestant cannot hold so many.
    fn build(bytes: usize) -> Result<Self, Unsupported>;

    /// Takes all of `bytes`, for which there is room.
    fn write(&mut self, bytes: &[u8]);

    /// Gives the oldest bytes, of which there are as many as `into` has.
    fn read(&mut self, into: &mut [u8]);

    /// Shows the oldest `len` bytes in one piece, and drops them. Who cannot lend them so copies them into `scratch` first, which is as
    /// long.
    #[inline(always)]
    fn look<T>(&mut self, len: usize, scratch: &mut [u8], look: impl FnOnce(&[u8]) -> T) -> T {
        let scratch = &mut scratch[..len];
        self.read(scratch);
        look(scratch)
    }

    /// Whether it knows what is in it. The floor gives what was written last, and is checked for no more.
    const KEEPS_BOOKS: bool = true;
}

/// The workloads with bytes between two threads.
pub const PIPES: &[&str] = &["spsc"];

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
    /// When this contestant cannot hold so many.
    fn build(bytes: usize) -> Result<(Self::Writer, Self::Reader), Unsupported>;

    /// Writes all of `bytes`, and waits for the reader if it has to.
    fn write(writer: &mut Self::Writer, bytes: &[u8]);

    /// Fills all of `into`, and waits for the writer if it has to.
    fn read(reader: &mut Self::Reader, into: &mut [u8]);
}

/// Carries messages from any thread to any other.
pub trait Messages: Sized + Sync + 'static {
    /// Builds one for about `bytes` bytes of messages at once. Not timed.
    ///
    /// # Errors
    ///
    /// When this contestant cannot hold so many.
    fn build(bytes: usize) -> Result<Self, Unsupported>;

    /// Sends a message, when there is room.
    fn send(&self, message: &[u8]);

    /// Copies the next message into `into`, when there is one; its length.
    fn receive(&self, into: &mut [u8]) -> usize;
}

/// Builds the typed cell of a case.
type Maker = fn(&Case) -> Result<Box<dyn Cell>, Unsupported>;

/// How a contestant serves one group of workloads.
#[derive(Debug, Clone, Copy)]
enum Offer {
    Cell(Maker),
    None(&'static str),
}

/// One column of the matrix.
#[derive(Debug, Clone, Copy)]
pub struct Contestant {
    /// As in reports and on the command line.
    pub name: &'static str,
    /// Strategy, setting, control or peer.
    pub kind: Kind,
    /// The contestant that it is a setting of.
    pub setting_of: Option<&'static str>,
    /// The workloads that it is in; all if there are none.
    only: &'static [&'static str],
    /// The idiom in which it is used, for the report.
    pub idiom: &'static str,
    /// Whether its memory comes from Rust's global allocator, so that calls to it can be counted.
    pub counted: bool,
    whole: Offer,
    sends: Offer,
    threads: Offer,
    frames: Offer,
    /// Rows with streams are those of who offers some; the others are not asked.
    streams: Option<Maker>,
    parses: Option<Maker>,
    /// And so are rows with pipes.
    pipes: Option<Maker>,
    /// And rows with messages.
    messages: Option<Maker>,
}

impl Contestant {
    /// A contestant that offers nothing yet.
    #[must_use]
    pub const fn new(name: &'static str, kind: Kind, idiom: &'static str) -> Self {
        let nothing = Offer::None("the adapter offers nothing here");
        Self {
            name,
            kind,
            setting_of: None,
            only: &[],
            idiom,
            counted: true,
            whole: nothing,
            sends: nothing,
            threads: nothing,
            frames: nothing,
            streams: None,
            parses: None,
            pipes: None,
            messages: None,
        }
    }

    /// A contestant that is in these workloads and no others.
    #[must_use]
    pub const fn only(
        name: &'static str,
        kind: Kind,
        only: &'static [&'static str],
        idiom: &'static str,
    ) -> Self {
        let mut contestant = Self::new(name, kind, idiom);
        contestant.only = only;
        contestant
    }

    /// The strategy `of` with other settings, for the workloads that are about them. It is a column of its own there, after the
    /// strategy's, and is not in the rest of the matrix. What differs is in the type that serves: `Bump<4>`, say.
    #[must_use]
    pub const fn setting(
        name: &'static str,
        of: &'static str,
        only: &'static [&'static str],
        idiom: &'static str,
    ) -> Self {
        let mut setting = Self::only(name, Kind::Setting, only, idiom);
        setting.setting_of = Some(of);
        setting
    }

    /// Whether it takes part in a row at all, be it with a reason why it does not serve it.
    #[must_use]
    pub fn takes_part(&self, case: &Case) -> bool {
        match case {
            Case::Stream { .. } => self.streams.is_some(),
            Case::Parse { .. } => self.parses.is_some(),
            Case::Spsc { .. } => self.pipes.is_some(),
            Case::Messages { .. } => self.messages.is_some(),
            _ => self.only.is_empty() || self.only.contains(&case.workload()),
        }
    }

    /// Serves the workloads in which one thread acquires and releases.
    #[must_use]
    pub fn whole<P: Pool>(mut self) -> Self {
        self.whole = Offer::Cell(workloads::whole::<P>);
        self
    }

    /// Serves the workloads in which a buffer is dropped on another thread.
    #[must_use]
    pub fn sends<P: Pool<Buf: Send>>(mut self) -> Self {
        self.sends = Offer::Cell(workloads::handoff::cell::<P>);
        self
    }

    /// Serves several threads with one pool, of which `P` is a handle.
    #[must_use]
    pub fn threads_share<P: Pool + Clone + Send>(mut self) -> Self {
        self.threads = Offer::Cell(workloads::shared::<P>);
        self
    }

    /// Serves several threads with one pool each.
    #[must_use]
    pub fn threads_each<P: Pool>(mut self) -> Self {
        self.threads = Offer::Cell(workloads::private::<P>);
        self
    }

    /// Serves the frame workloads.
    #[must_use]
    pub fn frames<F: Frames>(mut self) -> Self {
        self.frames = Offer::Cell(workloads::frames::<F>);
        self
    }

    /// Serves the workloads with streams of bytes.
    #[must_use]
    pub fn streams<S: Stream>(mut self) -> Self {
        self.streams = Some(workloads::stream::cell::<S>);
        // The floor keeps nothing that could be parsed.
        if S::KEEPS_BOOKS {
            self.parses = Some(workloads::parse::cell::<S>);
        }
        self
    }

    /// Serves the workloads with bytes between two threads.
    #[must_use]
    pub fn pipes<P: Pipe>(mut self) -> Self {
        self.pipes = Some(workloads::spsc::cell::<P>);
        self
    }

    /// Serves the workloads with messages between threads.
    #[must_use]
    pub fn messages<M: Messages>(mut self) -> Self {
        self.messages = Some(workloads::messages::cell::<M>);
        self
    }

    /// Why it cannot serve frames.
    #[must_use]
    pub fn no_frames(mut self, reason: &'static str) -> Self {
        self.frames = Offer::None(reason);
        self
    }

    /// Why its buffers cannot be dropped on another thread.
    #[must_use]
    pub fn no_sends(mut self, reason: &'static str) -> Self {
        self.sends = Offer::None(reason);
        self
    }

    /// Why it cannot serve several threads.
    #[must_use]
    pub fn no_threads(mut self, reason: &'static str) -> Self {
        self.threads = Offer::None(reason);
        self
    }

    /// Its memory does not come from Rust's global allocator.
    #[must_use]
    pub fn uncounted(mut self) -> Self {
        self.counted = false;
        self
    }

    /// Why the contestant does not serve such cases at all; `None` if it does, though building one may still fail.
    #[must_use]
    pub fn refusal(&self, case: &Case) -> Option<Unsupported> {
        match self.offer(case) {
            Offer::Cell(_) => None,
            Offer::None(reason) => Some(reason.into()),
        }
    }

    /// Builds the cell of `case`, pools included.
    ///
    /// # Errors
    ///
    /// When the contestant does not serve that case.
    pub fn cell(&self, case: &Case) -> Result<Box<dyn Cell>, Unsupported> {
        match self.offer(case) {
            Offer::Cell(make) => make(case),
            Offer::None(reason) => Err(reason.into()),
        }
    }

    fn offer(&self, case: &Case) -> Offer {
        match case {
            Case::Reuse { .. }
            | Case::Burst { .. }
            | Case::TwoPools { .. }
            | Case::Mixed { .. }
            | Case::RingFixed { .. }
            | Case::Chaos { threads: 1, .. }
            | Case::File { .. }
            | Case::Replay { .. } => self.whole,
            Case::Handoff { .. } => self.sends,
            Case::Threads { .. } | Case::Chaos { .. } => self.threads,
            Case::Frame { .. } | Case::RingExtend { .. } => self.frames,
            Case::Stream { .. } => {
                self.streams.map_or(Offer::None("buffers, and no ring of bytes"), Offer::Cell)
            }
            Case::Parse { .. } => {
                self.parses.map_or(Offer::None("no ring of bytes that keeps them"), Offer::Cell)
            }
            Case::Spsc { .. } => {
                self.pipes.map_or(Offer::None("buffers, and no bytes between threads"), Offer::Cell)
            }
            Case::Messages { .. } => {
                self.messages.map_or(Offer::None("buffers, and no queue of messages"), Offer::Cell)
            }
        }
    }
}

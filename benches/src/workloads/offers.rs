//! Which workloads a contestant is put to: what it implements, as the cells that it serves.

use crate::harness::contestant::{Contestant, Offer};
use crate::harness::serve::{Frames, Messages, Pipe, Pool, Stream};

impl Contestant {
    /// Serves the workloads in which one thread acquires and releases.
    #[must_use]
    pub fn whole<P: Pool>(mut self) -> Self {
        self.whole = Offer::Cell(super::whole::<P>);
        self
    }

    /// Serves the workloads in which a buffer is dropped on another thread.
    #[must_use]
    pub fn sends<P: Pool<Buf: Send>>(mut self) -> Self {
        self.sends = Offer::Cell(super::handoff::cell::<P>);
        self
    }

    /// Serves several threads with one pool, of which `P` is a handle.
    #[must_use]
    pub fn threads_share<P: Pool + Clone + Send>(mut self) -> Self {
        self.threads = Offer::Cell(super::shared::<P>);
        self
    }

    /// Serves several threads with one pool each.
    #[must_use]
    pub fn threads_each<P: Pool>(mut self) -> Self {
        self.threads = Offer::Cell(super::private::<P>);
        self
    }

    /// Serves the frame workloads.
    #[must_use]
    pub fn frames<F: Frames>(mut self) -> Self {
        self.frames = Offer::Cell(super::frames::<F>);
        self
    }

    /// Serves the workloads with streams of bytes.
    #[must_use]
    pub fn streams<S: Stream>(mut self) -> Self {
        self.streams = Some(|case, _| super::stream::cell::<S>(case));
        // The floor keeps nothing that could be parsed.
        if S::KEEPS_BOOKS {
            self.parses = Some(|case, _| super::parse::cell::<S>(case));
        }
        self
    }

    /// Serves the workloads with bytes between two threads.
    #[must_use]
    pub fn pipes<P: Pipe>(mut self) -> Self {
        self.pipes = Some(|case, _| super::spsc::cell::<P>(case));
        self
    }

    /// Serves the workloads with messages between threads.
    #[must_use]
    pub fn messages<M: Messages>(mut self) -> Self {
        self.messages = Some(|case, _| super::messages::cell::<M>(case));
        self
    }
}

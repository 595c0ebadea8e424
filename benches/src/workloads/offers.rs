//! Which workloads an engine is put to: what it implements, as the cells that it serves.

use crate::harness::engine::{Engine, Group, Offer};
use crate::harness::serve::{Frames, Messages, Pipe, Pool, Stream};

impl Engine {
    /// Serves the workloads in which one thread acquires and releases.
    #[must_use]
    pub fn whole<P: Pool>(self) -> Self {
        self.offers(Group::Whole, Offer::Cell(super::whole::<P>))
    }

    /// Serves the workloads in which a buffer is dropped on another thread.
    #[must_use]
    pub fn sends<P: Pool<Buf: Send>>(self) -> Self {
        self.offers(Group::Sends, Offer::Cell(super::handoff::cell::<P>))
    }

    /// Serves several threads with one pool, of which `P` is a handle.
    #[must_use]
    pub fn threads_share<P: Pool + Clone + Send>(self) -> Self {
        self.offers(Group::Threads, Offer::Cell(super::shared::<P>))
    }

    /// Serves several threads with one pool each.
    #[must_use]
    pub fn threads_each<P: Pool>(self) -> Self {
        self.offers(Group::Threads, Offer::Cell(super::private::<P>))
    }

    /// Serves the frame workloads.
    #[must_use]
    pub fn frames<F: Frames>(self) -> Self {
        self.offers(Group::Frames, Offer::Cell(super::frames::<F>))
    }

    /// Serves the workloads with streams of bytes.
    #[must_use]
    pub fn streams<S: Stream>(self) -> Self {
        let this = self.offers(Group::Streams, Offer::Cell(|case, _| super::stream::cell::<S>(case)));
        if !S::KEEPS_BOOKS {
            // `noop` keeps nothing that could be parsed.
            return this;
        }
        this.offers(Group::Parses, Offer::Cell(|case, _| super::parse::cell::<S>(case)))
    }

    /// Serves the workloads with bytes between two threads.
    #[must_use]
    pub fn pipes<P: Pipe>(self) -> Self {
        self.offers(Group::Pipes, Offer::Cell(|case, _| super::spsc::cell::<P>(case)))
    }

    /// Serves the workloads with messages between threads.
    #[must_use]
    pub fn messages<M: Messages>(self) -> Self {
        self.offers(Group::Messages, Offer::Cell(|case, _| super::messages::cell::<M>(case)))
    }
}

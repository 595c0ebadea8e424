//! Reads a program and takes its steps.

use bufcore::{BufferPool, SplitLease};
use testkit::bytes::Bytes;
use testkit::hostile::guarded;
use testkit::lockstep::{Live, Lockstep};
use testkit::ops::Op;

/// Steps of the longest program.
const STEPS: usize = 300;

/// How a program ends. It is said at its beginning, since most programs end where their bytes do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    /// The pool goes before what is out.
    pub(crate) pool_first: bool,
    /// What was parked goes before the pool, so that all is released that was lent.
    parked_first: bool,
}

impl End {
    /// Out of two bits.
    pub(crate) fn of(flags: u8) -> Self {
        Self { pool_first: flags & 1 != 0, parked_first: flags & 2 != 0 }
    }
}

/// A program on one pool.
pub(crate) struct Drive<P: BufferPool<Lease: SplitLease>> {
    pub(crate) lockstep: Lockstep<P>,
    /// As good as forgotten for the pool, except for the memory, of which a fuzzer has no end: all of it goes when the program is over.
    parked: Vec<Live<P::Lease>>,
}

impl<P: BufferPool<Lease: SplitLease>> Drive<P> {
    pub(crate) fn new(lockstep: Lockstep<P>) -> Self {
        Self { lockstep, parked: Vec::new() }
    }

    /// Parks one of the handles.
    pub(crate) fn park(&mut self, at: usize) {
        self.parked.extend(self.lockstep.take(at));
    }

    /// Takes steps while there are bytes: of about every fourth, `special` decides what it is.
    pub(crate) fn run(&mut self, bytes: &mut Bytes<'_>, mut special: impl FnMut(&mut Self, &mut Bytes<'_>)) {
        for _ in 0..STEPS {
            if bytes.is_empty() {
                break;
            }
            guarded(|| match bytes.byte() {
                0..60 => special(&mut *self, &mut *bytes),
                60..64 => self.park(bytes.below(256)),
                _ => {
                    let op = Op::decode(bytes);
                    self.lockstep.step(op);
                }
            });
            self.lockstep.compare();
        }
    }

    /// Releases all that the program has, and what was parked if it is to end so; says whether nothing is out that was lent by the steps.
    pub(crate) fn release(&mut self, end: End) -> bool {
        self.lockstep.drop_all();
        if end.parked_first {
            self.parked.drain(..).for_each(Live::end);
        }
        self.parked.is_empty() && self.lockstep.is_clear()
    }

    /// Ends it all: the pool first or last, and what was forgotten after that.
    pub(crate) fn finish(self, end: End) {
        let Self { lockstep, parked } = self;
        lockstep.finish(end.pool_first);
        parked.into_iter().for_each(Live::end);
    }
}

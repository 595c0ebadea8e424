//! Steps on the open frame.

use std::mem;

use bufcore::{BufferPool, SplitLease};

use super::{Lockstep, panics};
use crate::append::Append;
use crate::pattern;

impl<P: BufferPool<Lease: SplitLease>> Lockstep<P> {
    pub(super) fn writable(&mut self, bytes: usize, seed: u64) {
        for absurd in [isize::MAX as usize, usize::MAX] {
            assert!(self.writer.writable(absurd).is_err(), "a frame grew by {absurd}");
        }
        match self.writer.append(bytes) {
            Ok(room) => {
                assert_eq!(room.len(), bytes);
                self.has_place = true;
                pattern::fill(room, seed, 0);
                let from = self.frame.len();
                self.frame.resize(from + bytes, 0);
                pattern::fill(&mut self.frame[from..], seed, 0);
                // The frame's place is taken as any buffer's is. Its claim ends here, since it may
                // move.
                let filled = self.writer.filled();
                drop(self.shadow.claim(filled.as_ptr(), filled.len()));
            }
            Err(error) => {
                if let Some(refusal) = self.refusal {
                    return refusal(error, bytes);
                }
                let wanted = bytes + self.frame.len();
                assert!(self.rejects && wanted > 0, "{error}");
            }
        }
    }

    pub(super) fn filled_mut(&mut self, seed: u64) {
        pattern::fill(self.writer.filled_mut(), seed, 0);
        pattern::fill(&mut self.frame, seed, 0);
    }

    pub(super) fn frame_consume(&mut self, bytes: usize) {
        let len = self.frame.len();
        assert!(panics(|| self.writer.discard_front(len + 1)), "discarded past the end");
        let bytes = bytes % (len + 1);
        self.writer.discard_front(bytes);
        self.frame.drain(..bytes);
        self.forgotten += bytes;
    }

    pub(super) fn frame_truncate(&mut self, len: usize) {
        // Up to a few more than there are, which changes nothing.
        let len = len % (self.frame.len() + 3);
        self.writer.truncate(len);
        self.frame.truncate(len);
    }

    /// Finishes the frame, which is a buffer among the others then.
    pub fn finish_frame(&mut self) {
        let buf = self.writer.finish();
        assert!(self.writer.filled().is_empty(), "a finished writer is empty");
        let bytes = mem::take(&mut self.frame);
        (self.forgotten, self.has_place) = (0, false);
        let len = bytes.len();
        self.admit(buf, len, bytes);
    }
}

//! Steps on the open frame.

use std::mem;

use bufcore::{BufferPool, SplitLease};

use super::Lockstep;
use crate::pattern;

impl<P: BufferPool<Lease: SplitLease>> Lockstep<P> {
    pub(super) fn writable(&mut self, bytes: usize, seed: u64) {
        let Some(frames) = (self.frames)(&mut self.pool) else { return };
        match frames.writable(bytes) {
            Ok(room) => {
                assert_eq!(room.len(), bytes);
                self.has_place = true;
                pattern::fill(room, seed, 0);
                let from = self.frame.len();
                self.frame.resize(from + bytes, 0);
                pattern::fill(&mut self.frame[from..], seed, 0);
                // The frame's place is taken as any buffer's is. Its claim ends here, since it may
                // move.
                drop(self.shadow.claim(frames.filled().as_ptr(), frames.filled().len()));
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
        let Some(frames) = (self.frames)(&mut self.pool) else { return };
        pattern::fill(frames.filled_mut(), seed, 0);
        pattern::fill(&mut self.frame, seed, 0);
    }

    pub(super) fn frame_consume(&mut self, bytes: usize) {
        let Some(frames) = (self.frames)(&mut self.pool) else { return };
        let bytes = bytes % (self.frame.len() + 1);
        frames.consume(bytes);
        self.frame.drain(..bytes);
        self.forgotten += bytes;
    }

    pub(super) fn frame_truncate(&mut self, len: usize) {
        let Some(frames) = (self.frames)(&mut self.pool) else { return };
        // Up to a few more than there are, which changes nothing.
        let len = len % (self.frame.len() + 3);
        frames.truncate(len);
        self.frame.truncate(len);
    }

    pub(super) fn detach(&mut self) {
        let Some(frames) = (self.frames)(&mut self.pool) else { return };
        let buf = match frames.detach() {
            Ok(buf) => buf,
            Err(error) => {
                assert!(self.rejects, "{error}");
                return;
            }
        };
        assert!(frames.filled().is_empty(), "a frame is open after `detach`");
        let bytes = mem::take(&mut self.frame);
        (self.forgotten, self.has_place) = (0, false);
        let len = bytes.len();
        self.admit(buf, len, bytes);
    }
}

//! Steps that make several handles of one, and one of several.

use std::sync::Arc;

use bufcore::{Buf, BufferPool, SplitLease};

use super::{Handle, Live, Lockstep, panics};
use crate::model::{Claim, Expected};

impl<P: BufferPool<Lease: SplitLease>> Lockstep<P> {
    /// Splits a buffer in front of `index`, modulo what there is; returns the front.
    pub(super) fn split_buf(
        &mut self,
        mut buf: Buf<P::Lease>,
        expected: &mut Expected,
        index: usize,
        off: bool,
    ) -> Handle<P::Lease> {
        let limit = if off { buf.capacity() } else { buf.len() };
        for outside in [limit + 1, usize::MAX] {
            let split = || drop(if off { buf.split_off(outside) } else { buf.split_to(outside) });
            assert!(panics(split), "split at {outside} of {limit}");
        }
        let index = index % (limit + 1);
        let len = expected.bytes.len();
        let mut of_back = expected.slice(index.min(len), len);
        of_back.capacity = expected.capacity - index;
        expected.bytes.truncate(index);
        expected.capacity = index;
        // Of two parts, the one that has no bytes has no share in the memory; the front, if both
        // have none.
        if expected.capacity == 0 {
            expected.memory = Arc::new(Claim::nothing());
        } else if of_back.capacity == 0 {
            of_back.memory = Arc::new(Claim::nothing());
        }
        let (front, back) = if off {
            let back = buf.split_off(index);
            (buf, back)
        } else {
            (buf.split_to(index), buf)
        };
        self.live.push(Live { expected: of_back, handle: Handle::Buf(back) });
        Handle::Buf(front)
    }

    /// Joins two handles, where they are neighbours.
    pub(super) fn unsplit(&mut self, at: usize, other: usize) {
        let Some(Live { expected: mut first, handle }) = self.take(at) else { return };
        let Some(Live { expected: second, handle: other }) = self.take(other) else {
            return self.live.push(Live { expected: first, handle });
        };
        let is_one = Arc::ptr_eq(&first.memory, &second.memory);
        let (handle, rest) = match (handle, other) {
            (Handle::Buf(mut buf), Handle::Buf(other)) => {
                let is_next = buf.as_ptr().addr() + buf.capacity() == other.as_ptr().addr();
                let is_joined = is_one && is_next && (buf.spare_capacity() == 0 || other.is_empty());
                let (has_room, others_room) = (buf.capacity() > 0, other.capacity() > 0);
                let rest = buf.unsplit(other).err().map(Handle::Buf);
                assert_eq!(rest.is_none(), is_joined || !has_room || !others_room, "joined, or not");
                if rest.is_none() && others_room {
                    if has_room {
                        first.bytes.extend_from_slice(&second.bytes);
                        first.capacity += second.capacity;
                    } else {
                        first = second.clone();
                    }
                }
                (Handle::Buf(buf), rest)
            }
            (Handle::View(mut view), Handle::View(other)) => {
                let is_joined = is_one && view.as_ptr().addr() + view.len() == other.as_ptr().addr();
                let (has_bytes, others_bytes) = (!view.is_empty(), !other.is_empty());
                let rest = view.unsplit(other).err().map(Handle::View);
                assert_eq!(rest.is_none(), is_joined || !has_bytes || !others_bytes, "joined, or not");
                if rest.is_none() && others_bytes {
                    if has_bytes {
                        first.capacity = first.capacity.max(first.bytes.len() + second.capacity);
                        first.bytes.extend_from_slice(&second.bytes);
                    } else {
                        first = second.clone();
                    }
                }
                (Handle::View(view), rest)
            }
            (handle, other) => (handle, Some(other)),
        };
        self.live.push(Live { expected: first, handle });
        self.live.extend(rest.map(|handle| Live { expected: second, handle }));
    }
}

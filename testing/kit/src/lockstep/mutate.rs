//! Steps on the bytes of one buffer.

use bufcore::{Buf, Lease};

use super::panics;
use crate::model::Expected;
use crate::ops::Change;
use crate::pattern;

/// Does a step on a buffer, on both sides. Steps for views change nothing.
pub(super) fn mutate<L: Lease>(buf: &mut Buf<L>, expected: &mut Expected, change: Change) {
    let (len, room) = (buf.len(), buf.spare_capacity());
    let vec = &mut expected.bytes;
    match change {
        Change::Fill { seed } => {
            pattern::fill(buf, seed, 0);
            pattern::fill(vec, seed, 0);
        }
        Change::Extend { bytes, seed } => {
            let mut more = vec![0; bytes];
            pattern::fill(&mut more, seed, 0);
            match buf.extend_from_slice(&more) {
                Ok(()) => vec.extend_from_slice(&more),
                Err(error) => assert!(bytes > room && (error.requested, error.available) == (bytes, room)),
            }
        }
        Change::Push { value } => match buf.push(value) {
            Ok(()) => vec.push(value),
            Err(_) => assert_eq!(room, 0),
        },
        Change::Advance { bytes } => {
            let bytes = bytes % (room + 1);
            let shown = buf.spare_mut()[..bytes].to_vec();
            buf.commit(bytes);
            vec.extend_from_slice(&shown);
            for past in [buf.spare_capacity() + 1, usize::MAX] {
                assert!(panics(|| buf.commit(past)), "advanced past the end");
            }
        }
        Change::WriteSpare { seed } => pattern::fill(buf.spare_mut(), seed, 0),
        Change::Resize { len: target, value } => {
            for absurd in [isize::MAX as usize, usize::MAX] {
                assert!(buf.resize(absurd, value).is_err(), "resized to {absurd}");
            }
            match buf.resize(target, value) {
                Ok(()) => vec.resize(target, value),
                Err(error) => assert!(target > len + room && error.available == room),
            }
        }
        Change::Truncate { len: target } => {
            buf.truncate(target);
            vec.truncate(target);
        }
        Change::Clear => {
            buf.clear();
            vec.clear();
        }
        Change::DiscardFront { bytes } => {
            assert!(panics(|| buf.consume(len + 1)), "consumed past the end");
            let bytes = bytes % (len + 1);
            buf.consume(bytes);
            expected.consume(bytes);
        }
        Change::Compact => {
            let (before, capacity) = (buf.as_ptr().addr(), buf.capacity());
            buf.compact();
            // What comes back is in front.
            let gained = buf.capacity() - capacity;
            assert_eq!(before - buf.as_ptr().addr(), gained);
            assert!(gained == 0 || expected.is_unique(), "another handle shares the memory");
            expected.capacity += gained;
        }
        Change::ShrinkTo { bytes } => {
            let bytes = bytes % (len + room + 1);
            buf.shrink_to(bytes);
            expected.capacity = bytes.max(len);
        }
        _ => {}
    }
}

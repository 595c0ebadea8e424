//! Buffers, views and frames that know what they must hold, for the traffic between threads.

use std::sync::Arc;

use bufcore::{AcquireError, Buf, BufferPool, Frozen, SplitLease, Writer};
use fastrand::Rng;

use crate::append::Append;
use crate::model::{Claim, Shadow};
use crate::pattern;

enum Handle<L: SplitLease> {
    Buf(Buf<L>),
    View(Frozen<L>),
}

/// A buffer or view, and what it must hold. It is looked at when it goes.
pub(crate) struct Parcel<L: SplitLease> {
    /// In front of the handle: it has to end before the memory does.
    claim: Option<Arc<Claim>>,
    /// `None` once it was taken out.
    handle: Option<Handle<L>>,
    seed: u64,
    position: usize,
    len: usize,
}

impl<L: SplitLease> Parcel<L> {
    /// Acquires a buffer of `bytes` bytes, now and then a zeroed one, and fills it.
    pub(crate) fn acquired<P: BufferPool<Lease = L>>(
        pool: &mut P,
        bytes: usize,
        shadow: Option<&Arc<Shadow>>,
        rng: &mut Rng,
    ) -> Result<Self, AcquireError> {
        let mut buf = if rng.u8(..8) > 0 {
            let buf = pool.acquire(bytes)?;
            assert!(buf.is_empty() && buf.capacity() >= bytes, "{} of {bytes} bytes", buf.capacity());
            buf
        } else {
            let mut buf = pool.acquire_zeroed(bytes)?;
            assert!(buf.len() == bytes && buf.iter().all(|&byte| byte == 0), "zeroed bytes that are not");
            buf.clear();
            buf
        };
        let seed = rng.u64(..);
        pattern::fill(&mut buf.spare_mut()[..bytes], seed, 0);
        buf.commit(bytes);
        Ok(Self::of(buf, seed, shadow))
    }

    /// Writes `bytes` bytes in some steps. Between two of them it acquires buffers that are in the
    /// frame's way.
    pub(crate) fn framed<P: BufferPool<Lease = L>>(
        pool: &mut P,
        bytes: usize,
        shadow: Option<&Arc<Shadow>>,
        rng: &mut Rng,
    ) -> Result<Self, AcquireError> {
        let seed = rng.u64(..);
        let mut writer = Writer::new(pool);
        let mut in_the_way = Vec::new();
        let mut filled = 0;
        let steps = rng.usize(1..=4);
        for step in 1..=steps {
            let target = if step == steps { bytes } else { rng.usize(filled..=bytes) };
            match writer.append(target - filled) {
                Ok(room) => pattern::fill(room, seed, filled),
                Err(error) => {
                    // What is there already must still be.
                    let given_up = Self::of(writer.finish(), seed, shadow);
                    assert_eq!(given_up.len, filled, "bytes of a frame that could not grow");
                    return Err(error);
                }
            }
            filled = target;
            for _ in 0..rng.usize(..3) {
                in_the_way.extend(Self::acquired(writer.get_mut(), rng.usize(1..512), shadow, rng));
            }
            in_the_way.truncate(rng.usize(..=in_the_way.len()));
        }
        let parcel = Self::of(writer.finish(), seed, shadow);
        assert_eq!(parcel.len, bytes, "length of the buffer");
        parcel.check();
        Ok(parcel)
    }

    fn of(buf: Buf<L>, seed: u64, shadow: Option<&Arc<Shadow>>) -> Self {
        let (claim, len) = (claim(&buf, shadow), buf.len());
        Self { claim, handle: Some(Handle::Buf(buf)), seed, position: 0, len }
    }

    fn part(&self, handle: Handle<L>, from: usize, len: usize) -> Self {
        let (claim, position) = (self.claim.clone(), self.position + from);
        Self { claim, handle: Some(handle), seed: self.seed, position, len }
    }

    /// Makes a parcel of another view. Without bytes it holds nothing.
    fn view(&self, view: Frozen<L>, from: usize, len: usize) -> Self {
        let mut part = self.part(Handle::View(view), from, len);
        if len == 0 {
            part.claim = None;
        }
        part
    }

    pub(crate) fn check(&self) {
        let bytes: &[u8] = match &self.handle {
            Some(Handle::Buf(buf)) => buf,
            Some(Handle::View(view)) => view,
            None => return,
        };
        assert_eq!(bytes.len(), self.len, "bytes of a handle");
        pattern::check(bytes, self.seed, self.position);
    }

    /// Does something to the handle, and returns what comes of it besides.
    pub(crate) fn change(&mut self, rng: &mut Rng) -> Option<Self> {
        self.check();
        let at = rng.usize(..=self.len);
        let mut besides = None;
        let handle = match self.handle.take()? {
            Handle::Buf(mut buf) => match rng.u8(..6) {
                0 | 1 => Handle::View(buf.freeze()),
                2 => {
                    // Of a buffer in parts, too: each has its bytes to itself, and its room behind
                    // them.
                    self.seed = rng.u64(..);
                    pattern::fill(&mut buf, self.seed, self.position);
                    pattern::fill(buf.spare_mut(), !self.seed, 0);
                    Handle::Buf(buf)
                }
                3 => {
                    buf.consume(at);
                    (self.position, self.len) = (self.position + at, self.len - at);
                    Handle::Buf(buf)
                }
                _ => {
                    let capacity = buf.capacity();
                    let back = buf.split_off(at);
                    let mut back = self.part(Handle::Buf(back), at, self.len - at);
                    self.len = at;
                    // A part of no bytes holds nothing.
                    if at == 0 {
                        self.claim = None;
                    } else if at == capacity {
                        back.claim = None;
                    }
                    besides = Some(back);
                    Handle::Buf(buf)
                }
            },
            Handle::View(mut view) => match rng.u8(..5) {
                0 => {
                    besides = Some(self.view(view.clone(), 0, self.len));
                    Handle::View(view)
                }
                1 => {
                    let to = rng.usize(at..=self.len);
                    besides = Some(self.view(view.slice(at..to), at, to - at));
                    Handle::View(view)
                }
                2 => {
                    besides = Some(self.view(view.split_off(at), at, self.len - at));
                    self.len = at;
                    if at == 0 {
                        self.claim = None;
                    }
                    Handle::View(view)
                }
                _ => match view.try_into_mut() {
                    Ok(mut buf) => {
                        // Its own again.
                        self.seed = rng.u64(..);
                        pattern::fill(&mut buf, self.seed, self.position);
                        Handle::Buf(buf)
                    }
                    Err(view) => Handle::View(view),
                },
            },
        };
        self.handle = Some(handle);
        besides
    }
}

impl<L: SplitLease> Drop for Parcel<L> {
    fn drop(&mut self) {
        self.check();
    }
}

/// Notes the addresses of a fresh buffer, in rounds that have a map.
fn claim<L: SplitLease>(buf: &Buf<L>, shadow: Option<&Arc<Shadow>>) -> Option<Arc<Claim>> {
    let claim = shadow?.claim(buf.as_ptr(), buf.capacity());
    // Not shared when it is switched off: its count would order what the views have to.
    (!claim.is_empty()).then(|| Arc::new(claim))
}

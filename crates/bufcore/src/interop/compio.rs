//! The `compio` runtime, through its crate `compio-buf`.

use core::fmt;
use core::mem::MaybeUninit;
use core::slice;

use compio_buf::{IntoInner, IoBuf, IoBufMut, SetLen};

use crate::{Buf, Lease};

/// Passes a buffer to reads of compio.
///
/// compio's `IoBufMut` lets safe code write uninitialised bytes: its `as_uninit` returns the whole
/// buffer as a `&mut [MaybeUninit<u8>]`. A later buffer of the same memory would expose them.
/// [`Buf`] therefore does not implement that trait. The function that makes this wrapper is
/// `unsafe`: its caller vouches for the code that reads.
///
/// A read overwrites the filled bytes from the front. The length grows if more is read, and never
/// shrinks. [`slice`](IoBuf::slice) appends after them.
///
/// Ownership: compio owns the value while the kernel writes, even if the future is dropped. The
/// memory is released when the value is dropped, as with the buffer.
///
/// Cost: none; it is the buffer itself.
///
/// # Managed reads
///
/// compio has its own buffers for `read_managed`, and takes their memory from a static
/// `BufferAllocator`. A `PoolAllocator` (feature `allocator-api2-0_4`, or `0_2`) over a shared pool
/// in a static implements that trait in two lines: its `allocate` and `deallocate`, with the layout
/// of `len` bytes. The buffers of a pool with mappings begin at least 64 bytes into a page. On some
/// processors the kernel copies to the first bytes of a page up to seven times more slowly.
///
/// ```
/// use bufcore::compio::ReadBuf;
/// use bufcore::{BufferPool, HeapLease, HeapPool};
/// use compio_buf::{BufResult, IntoInner, IoBufMut};
///
/// /// Reads once, as `compio::net::TcpStream::read` does.
/// async fn read<B: IoBufMut>(mut buf: B) -> BufResult<usize, B> {
///     # buf.extend_from_slice(b"hello").unwrap();
///     BufResult(Ok(5), buf)
/// }
///
/// # futures(async {
/// let buf = HeapPool::new().acquire(4096)?;
/// // SAFETY: `read` writes no uninitialised bytes.
/// let buf: ReadBuf<HeapLease> = unsafe { ReadBuf::new(buf) };
/// let BufResult(read, buf) = read(buf).await;
/// let buf = buf.into_inner();
/// assert_eq!((read?, &buf[..]), (5, &b"hello"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # });
/// # fn futures(f: impl Future<Output = Result<(), Box<dyn std::error::Error>>>) {
/// #     use std::task::{Context, Poll, Waker};
/// #     let polled = std::pin::pin!(f).poll(&mut Context::from_waker(Waker::noop()));
/// #     assert!(matches!(polled, Poll::Ready(Ok(()))));
/// # }
/// ```
pub struct ReadBuf<L: Lease> {
    buf: Buf<L>,
}

impl<L: Lease> ReadBuf<L> {
    /// Wraps `buf`, whose memory compio's traits may write from now on.
    ///
    /// # Safety
    ///
    /// 1. No code that owns this value writes uninitialised bytes through
    ///    [`as_uninit`](IoBufMut::as_uninit), or through a `Slice` or `Uninit` of the value.
    ///
    /// The operations of compio's files and sockets write none: the kernel writes, or initialised
    /// bytes are copied.
    #[inline]
    #[must_use]
    pub unsafe fn new(buf: Buf<L>) -> Self {
        Self { buf }
    }
}

/// Returns the buffer. Its filled part is the bytes that were read.
impl<L: Lease> IntoInner for ReadBuf<L> {
    type Inner = Buf<L>;

    #[inline]
    fn into_inner(self) -> Buf<L> {
        self.buf
    }
}

impl<L: Lease> IoBuf for ReadBuf<L> {
    #[inline]
    fn as_init(&self) -> &[u8] {
        &self.buf
    }
}

impl<L: Lease> SetLen for ReadBuf<L> {
    /// # Panics
    ///
    /// Panics when `len` is over the capacity.
    #[inline]
    unsafe fn set_len(&mut self, len: usize) {
        self.buf.truncate(len);
        self.buf.commit(len - self.buf.len());
    }
}

impl<L: Lease> IoBufMut for ReadBuf<L> {
    #[inline]
    fn as_uninit(&mut self) -> &mut [MaybeUninit<u8>] {
        let start = self.buf.memory_ptr().cast::<MaybeUninit<u8>>();
        // SAFETY:
        // - valid, exclusive: `capacity` bytes from there belong to this buffer (I1 of `Buf`),
        //   which is borrowed for as long as the slice.
        // - initialised: a `MaybeUninit` need not be. That the bytes stay initialised is the
        //   promise of the caller of `new`.
        unsafe { slice::from_raw_parts_mut(start.as_ptr(), self.buf.capacity()) }
    }
}

impl<L: Lease> fmt::Debug for ReadBuf<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadBuf").field(&self.buf).finish()
    }
}

//! Typed values in a ring.
//!
//! # Invariants
//!
//! - V1: `ptr` is aligned for `T` and valid for `capacity` values of it in `memory`; the first
//!   `len` are initialised, and this vector's.
//! - V2: no byte behind the first `dirty` ones was written as part of a `T`, but those of the first
//!   `len` values.

mod error;
mod into_iter;
mod traits;

use core::ptr::NonNull;
use core::slice;

use bufcore::{AcquireError, Buf, ReserveError, size};

pub use self::error::PushError;
pub use self::into_iter::IntoIter;
use crate::{RingLease, RingPool};

/// Values of one type in a ring: like a `Vec<T>` that cannot reallocate. [`RingPool::acquire_vec`]
/// makes it.
///
/// It dereferences to a slice. Values may have any size, including zero, any alignment, and a
/// `Drop`.
///
/// Ownership: dropping it drops the values and releases the memory, on any thread, even if the ring
/// was dropped. It is as `Send` and `Sync` as its values. Before the memory is released, the used
/// part of it is zeroed. Values may have uninitialised padding, and the next owner may read the
/// bytes.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use bufring::RingPool;
///
/// struct Order {
///     amount: u64,
///     id: u128,
/// }
///
/// let mut ring = RingPool::new(1024)?;
/// let mut orders = ring.acquire_vec(16)?;
/// orders.push(Order { amount: 42, id: 43 })?;
/// assert_eq!((orders.len(), orders[0].id), (1, 43));
/// let order = orders.pop().unwrap();
/// assert_eq!(order.amount, 42);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RingVec<T> {
    ptr: NonNull<T>,
    len: usize,
    capacity: usize,
    /// Declared last and so dropped last: after the values, also when one of them panics.
    memory: Memory,
}

/// The memory of a vector. Dropping it zeroes what was used, and gives it back.
struct Memory {
    /// The first byte of the first value.
    start: NonNull<u8>,
    /// Bytes from there that were used (V2).
    dirty: usize,
    /// For its drop.
    #[allow(dead_code, reason = "see above")]
    buf: Buf<RingLease>,
}

// SAFETY: the values are in memory that this vector alone has, as those of a `Vec` are.
unsafe impl<T: Send> Send for RingVec<T> {}
// SAFETY: a shared vector lends its values shared.
unsafe impl<T: Sync> Sync for RingVec<T> {}

impl RingPool {
    /// Takes an empty vector with room for `capacity` values.
    ///
    /// Cost: as [`acquire`](RingPool::acquire), for the bytes of the values, plus up to the
    /// alignment if that is larger than the ring's.
    ///
    /// # Errors
    ///
    /// The errors are those of [`acquire`](RingPool::acquire), with the needed bytes. Zero-sized
    /// values need none.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(1024)?;
    /// let mut numbers = ring.acquire_vec::<u64>(4)?;
    /// numbers.push(42)?;
    /// assert_eq!((numbers[..].len(), numbers.capacity()), (1, 4));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg_attr(feature = "track", track_caller)]
    pub fn acquire_vec<T>(&mut self, capacity: usize) -> Result<RingVec<T>, AcquireError> {
        let shift = align_of::<T>().saturating_sub(self.grid.alignment());
        let bytes = capacity.saturating_mul(size_of::<T>());
        if bytes == 0 {
            let memory = Memory { start: NonNull::dangling(), dirty: 0, buf: self.acquire(0)? };
            return Ok(RingVec { ptr: NonNull::dangling(), len: 0, capacity, memory });
        }
        let mut buf = self.acquire(bytes.saturating_add(shift))?;
        let first = NonNull::from(buf.spare_mut()).cast::<u8>();
        let address = first.addr().get();
        let skip = size::align_up(address, align_of::<T>()).map_or(0, |aligned| aligned - address);
        debug_assert!(skip <= shift, "{skip} of {shift}");
        // SAFETY: at most `shift` bytes, which were asked for on top.
        let start = unsafe { first.add(skip) };
        Ok(RingVec { ptr: start.cast(), len: 0, capacity, memory: Memory { start, dirty: 0, buf } })
    }
}

impl<T> RingVec<T> {
    /// Appends a value.
    ///
    /// # Errors
    ///
    /// Returns the value in the error if the vector is full.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(1024)?;
    /// let mut values = ring.acquire_vec::<u32>(4)?;
    /// for value in 0..4 {
    ///     values.push(value)?;
    /// }
    /// assert!(values.is_full() && values.push(4).is_err());
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), PushError<T>> {
        if self.is_full() {
            return Err(PushError(value));
        }
        let place = self.place(self.len);
        // SAFETY: in the vector's memory (V1), behind its last value.
        unsafe { place.write(value) };
        self.len += 1;
        Ok(())
    }

    /// Removes the last value and returns it.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(1024)?;
    /// let mut values = ring.acquire_vec::<u32>(4)?;
    /// values.push(1)?;
    /// assert_eq!((values.pop(), values.pop()), (Some(1), None));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.note_used();
        self.len = self.len.checked_sub(1)?;
        // SAFETY: it was the last value, and is not the vector's any more.
        Some(unsafe { self.place(self.len).read() })
    }

    /// Appends clones of `values`.
    ///
    /// # Errors
    ///
    /// Returns an error if they do not all fit; none is appended then. The numbers in the error
    /// count values.
    ///
    /// # Panics
    ///
    /// Panics if a clone does; the clones before it remain.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(1024)?;
    /// let mut values = ring.acquire_vec::<u32>(4)?;
    /// values.extend_from_slice(&[1, 2])?;
    /// assert!(values.extend_from_slice(&[3, 4, 5]).is_err()); // no room for all of them
    /// assert_eq!(values[..], [1, 2]);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn extend_from_slice(&mut self, values: &[T]) -> Result<(), ReserveError>
    where
        T: Clone,
    {
        let available = self.capacity - self.len;
        if values.len() > available {
            return Err(ReserveError { requested: values.len(), available });
        }
        for value in values {
            let clone = value.clone();
            // SAFETY: there is room for it (V1).
            unsafe { self.place(self.len).write(clone) };
            self.len += 1;
        }
        Ok(())
    }

    /// Inserts a value at `index`, and shifts the later ones up. The index comes first, as in
    /// `Vec::insert`.
    ///
    /// It is not named `insert`, because that of `ringal` takes the value first: such calls with
    /// integers would compile and do something else.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// let mut ring = bufring::RingPool::new(1024)?;
    /// let mut numbers = ring.acquire_vec(3)?;
    /// numbers.extend_from_slice(&[10, 30])?;
    /// numbers.try_insert(1, 20)?;
    /// assert_eq!(numbers[..], [10, 20, 30]);
    /// assert_eq!(numbers.try_insert(0, 5).unwrap_err().0, 5); // full
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the value in the error if the vector is full.
    ///
    /// # Panics
    ///
    /// Panics if `index` is over the length.
    #[track_caller]
    pub fn try_insert(&mut self, index: usize, value: T) -> Result<(), PushError<T>> {
        assert!(index <= self.len, "try_insert at {index} of {} values", self.len);
        if self.is_full() {
            return Err(PushError(value));
        }
        let place = self.place(index);
        // SAFETY: the values from `index` on, and the place behind the last one, which is in the
        // vector's memory.
        unsafe { place.copy_to(self.place(index + 1), self.len - index) };
        // SAFETY: what was there has moved up, or there was nothing.
        unsafe { place.write(value) };
        self.len += 1;
        Ok(())
    }

    /// Removes the value at `index`, and shifts the later ones down.
    ///
    /// # Panics
    ///
    /// Panics if `index` is out of bounds.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(1024)?;
    /// let mut values = ring.acquire_vec::<u32>(4)?;
    /// values.extend_from_slice(&[1, 2, 3])?;
    /// assert_eq!((values.remove(0), &values[..]), (1, &[2, 3][..]));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn remove(&mut self, index: usize) -> T {
        assert!(index < self.len, "remove at {index} of {} values", self.len);
        self.note_used();
        let place = self.place(index);
        // SAFETY: a value of the vector, which is overwritten next, or is behind the last one then.
        let value = unsafe { place.read() };
        self.len -= 1;
        // SAFETY: the values behind, which move down by one.
        unsafe { self.place(index + 1).copy_to(place, self.len - index) };
        value
    }

    /// Removes the value at `index`, and puts the last one in its place.
    ///
    /// # Panics
    ///
    /// Panics if `index` is out of bounds.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(1024)?;
    /// let mut values = ring.acquire_vec::<u32>(4)?;
    /// values.extend_from_slice(&[1, 2, 3])?;
    /// assert_eq!((values.swap_remove(0), &values[..]), (1, &[3, 2][..]));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn swap_remove(&mut self, index: usize) -> T {
        assert!(index < self.len, "swap_remove at {index} of {} values", self.len);
        self.note_used();
        let place = self.place(index);
        // SAFETY: a value of the vector, which is overwritten next, or is behind the last one then.
        let value = unsafe { place.read() };
        self.len -= 1;
        // SAFETY: the last value; it may be the one itself.
        unsafe { self.place(self.len).copy_to(place, 1) };
        value
    }

    /// Keeps the first `len` values and drops the others; if there are fewer, nothing changes.
    ///
    /// # Panics
    ///
    /// Panics if a value's drop does. The others are still dropped.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use bufring::RingPool;
    ///
    /// let mut ring = RingPool::new(1024)?;
    /// let mut values = ring.acquire_vec::<u32>(4)?;
    /// values.extend_from_slice(&[1, 2, 3])?;
    /// values.truncate(1);
    /// assert_eq!(values[..], [1]);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.note_used();
        let tail = NonNull::slice_from_raw_parts(self.place(len), self.len - len);
        // Before the drops, one of which may panic.
        self.len = len;
        // SAFETY: these were values of the vector, and are not any more.
        unsafe { tail.drop_in_place() };
    }

    /// Drops all values.
    ///
    /// # Panics
    ///
    /// Panics as [`truncate`](Self::truncate) does.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// use std::rc::Rc;
    ///
    /// let mut ring = bufring::RingPool::new(1024)?;
    /// let mut names = ring.acquire_vec::<Rc<str>>(4)?;
    /// let name: Rc<str> = "Ada".into();
    /// names.push(Rc::clone(&name))?;
    /// names.clear();
    /// assert_eq!(Rc::strong_count(&name), 1); // the value was dropped
    /// assert_eq!((names.len(), names.capacity()), (0, 4)); // the capacity is unchanged
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Returns the values.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: `len` values from `ptr` on are initialised and ours (V1).
        unsafe { slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// Returns the values as a mutable slice.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// let mut ring = bufring::RingPool::new(1024)?;
    /// let mut ports = ring.acquire_vec::<u16>(4)?;
    /// ports.extend_from_slice(&[443, 22, 80])?;
    /// ports.as_mut_slice().sort();
    /// assert_eq!(ports.as_slice(), [22, 80, 443]);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, and `&mut self` makes it the only borrow.
        unsafe { slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }

    /// Returns the number of values.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the vector has no values.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether there is no room for another value.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// let mut ring = bufring::RingPool::new(1024)?;
    /// let mut batch = ring.acquire_vec(3)?;
    /// let mut batches = 0;
    /// for event in 0..10 {
    ///     batch.push(event)?;
    ///     if batch.is_full() {
    ///         batches += 1; // sent, written, …
    ///         batch.clear();
    ///     }
    /// }
    /// assert_eq!((batches, &batch[..]), (3, &[9][..]));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len == self.capacity
    }

    /// Returns the number of values that the vector can hold.
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// let mut ring = bufring::RingPool::new(1024)?;
    /// let mut values = ring.acquire_vec::<[u8; 12]>(5)?;
    /// assert_eq!((values.capacity(), values.len()), (5, 0));
    /// values.push([7; 12])?;
    /// assert_eq!((values.capacity(), values.len()), (5, 1)); // never more
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the place of the value at `index`, at most `capacity`.
    #[inline]
    fn place(&self, index: usize) -> NonNull<T> {
        debug_assert!(index <= self.capacity, "{index} of {}", self.capacity);
        // SAFETY: the vector's memory has room for `capacity` values (V1).
        unsafe { self.ptr.add(index) }
    }

    /// Notes what was used, before there is less of it (V2).
    #[inline]
    fn note_used(&mut self) {
        self.memory.dirty = self.memory.dirty.max(self.len * size_of::<T>());
    }
}

impl<T> Drop for RingVec<T> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: bytes of the buffer, which nobody else has; the values are gone.
        unsafe { self.start.write_bytes(0, self.dirty) }
    }
}

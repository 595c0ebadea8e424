//! Allocation of one value that can fail.

/// Puts the value of `make` on the heap, or returns `None` if the allocation fails. `Box::from_raw`
/// takes ownership of it. A large value is copied once: it is made when its memory is allocated.
///
/// ```
/// use bufcore::author::try_box;
///
/// let value = try_box(|| String::from("bookkeeping")).expect("room for a string");
/// // SAFETY: made by `try_box`, and taken back once.
/// let value = unsafe { Box::from_raw(value.as_ptr()) };
/// assert_eq!(*value, "bookkeeping");
/// ```
#[inline(always)]
pub fn try_box<T>(make: impl FnOnce() -> T) -> Option<core::ptr::NonNull<T>> {
    let mut place = alloc::vec::Vec::new();
    place.try_reserve_exact(1).ok()?;
    place.push(make());
    // No copy and no allocation: the vector is full. A slice of one is laid out as its element.
    core::ptr::NonNull::new(alloc::boxed::Box::into_raw(place.into_boxed_slice()).cast())
}

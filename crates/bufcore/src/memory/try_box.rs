//! Allocation of one value that can fail.

/// Puts `value` on the heap, or returns `None` if the allocation fails. `Box::from_raw` takes
/// ownership of it.
///
/// ```
/// use bufcore::author::try_box;
///
/// let value = try_box(String::from("bookkeeping")).expect("room for a string");
/// // SAFETY: made by `try_box`, and taken back once.
/// let value = unsafe { Box::from_raw(value.as_ptr()) };
/// assert_eq!(*value, "bookkeeping");
/// ```
pub fn try_box<T>(value: T) -> Option<core::ptr::NonNull<T>> {
    let mut place = alloc::vec::Vec::new();
    place.try_reserve_exact(1).ok()?;
    place.push(value);
    // No copy and no allocation: the vector is full. A slice of one is laid out as its element.
    core::ptr::NonNull::new(alloc::boxed::Box::into_raw(place.into_boxed_slice()).cast())
}

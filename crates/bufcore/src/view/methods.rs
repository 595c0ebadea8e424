//! The methods that all views have.

/// Gives a view, which has the fields `ptr` and `len`, the methods that show and cut its bytes.
///
/// `skip` of the view moves its start, and `$empty` makes one without bytes, which holds nothing.
macro_rules! view_methods {
    (impl[$($generics:tt)*] $view:ty, $empty:ident) => {
        impl<$($generics)*> $view {
            /// Returns the number of bytes.
            #[inline]
            #[must_use]
            pub const fn len(&self) -> usize {
                self.len
            }

            /// Returns whether there are no bytes.
            #[inline]
            #[must_use]
            pub const fn is_empty(&self) -> bool {
                self.len == 0
            }

            /// Returns the bytes, as `&view[..]` does.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// use bufcore::HeapPool;
            ///
            /// let mut buf = HeapPool::new().acquire(16)?;
            /// write!(buf, "{}", 1500)?;
            /// let view = buf.freeze();
            /// let text = std::str::from_utf8(view.as_slice()).unwrap();
            /// assert_eq!(text.parse::<u32>(), Ok(1500));
            /// # }
            /// # Ok::<(), bufcore::Error>(())
            /// ```
            #[inline]
            #[must_use]
            pub const fn as_slice(&self) -> &[u8] {
                // SAFETY: `len` bytes from `ptr` are valid and initialised while a view of the
                // memory lives, and nobody writes them.
                unsafe { core::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
            }

            /// Returns a view of part of this one. Both share the memory; a part without bytes does
            /// not.
            ///
            /// # Panics
            ///
            /// Panics if `range` is out of bounds or ends before it starts, or if one memory has
            /// more than two billion views.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// use bufcore::{HeapPool, SharedBytes};
            ///
            /// let mut buf = HeapPool::new().acquire(16)?;
            /// buf.extend_from_slice(b"header body")?;
            /// let message = buf.freeze();
            /// let body = message.slice(7..);
            /// drop(message); // the memory is kept: `body` shares it
            /// assert_eq!(&body[..], b"body");
            /// assert_eq!(SharedBytes::from(body).slice(..2), b"bo");
            /// # }
            /// # Ok::<(), bufcore::Error>(())
            /// ```
            #[must_use]
            #[track_caller]
            pub fn slice(&self, range: impl core::ops::RangeBounds<usize>) -> Self {
                let core::ops::Range { start, end } = crate::size::within(range, self.len);
                if start == end {
                    return Self::$empty();
                }
                let mut part = self.clone();
                part.skip(start);
                part.len = end - start;
                part
            }

            /// Splits the view: returns the first `at` bytes and keeps the rest. Both share the
            /// memory; a part without bytes does not.
            ///
            /// # Panics
            ///
            /// Panics if `at` is over [`len`](Self::len), or if one memory has more than two
            /// billion views.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// use bufcore::SharedBytes;
            ///
            /// let mut rest = SharedBytes::from(b"one\ntwo".to_vec());
            /// let line = rest.split_to(4);
            /// assert_eq!((&line[..], &rest[..]), (&b"one\n"[..], &b"two"[..]));
            /// # }
            /// # Ok::<(), bufcore::Error>(())
            /// ```
            #[inline]
            #[must_use = "the first part is dropped otherwise; use `consume` to cut the front off"]
            #[track_caller]
            pub fn split_to(&mut self, at: usize) -> Self {
                if at == self.len && at > 0 {
                    return self.take_all();
                }
                let front = self.slice(..at);
                self.skip(at);
                front
            }

            /// Splits the view: keeps the first `at` bytes and returns the rest. Both share the
            /// memory; a part without bytes does not.
            ///
            /// # Panics
            ///
            /// Panics if `at` is over [`len`](Self::len), or if one memory has more than two
            /// billion views.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// use bufcore::HeapPool;
            ///
            /// let mut buf = HeapPool::new().acquire(16)?;
            /// buf.extend_from_slice(b"one\ntwo")?;
            /// let mut line = buf.freeze();
            /// let rest = line.split_off(4);
            /// assert_eq!((&line[..], &rest[..]), (&b"one\n"[..], &b"two"[..]));
            /// # }
            /// # Ok::<(), bufcore::Error>(())
            /// ```
            #[inline]
            #[must_use = "the second part is dropped otherwise; use `truncate` to cut the end off"]
            #[track_caller]
            pub fn split_off(&mut self, at: usize) -> Self {
                if at == 0 && self.len > 0 {
                    return self.take_all();
                }
                let back = self.slice(at..);
                self.len = at;
                back
            }

            /// Drops the first `bytes` bytes. The view releases its share of the memory if no byte
            /// is left.
            ///
            /// Cost: nothing is copied.
            ///
            /// # Panics
            ///
            /// Panics when `bytes` is over [`len`](Self::len).
            ///
            /// ```
            /// use bufcore::SharedBytes;
            ///
            /// let mut request = SharedBytes::from_static(b"GET /");
            /// request.consume(4);
            /// assert_eq!(request, "/");
            /// ```
            #[inline]
            #[track_caller]
            pub fn consume(&mut self, bytes: usize) {
                assert!(bytes <= self.len, "consume({bytes}) of {} bytes", self.len);
                if bytes == self.len {
                    self.clear();
                } else {
                    self.skip(bytes);
                }
            }

            /// Keeps the first `len` bytes. If the view is shorter, nothing changes. The view
            /// releases its share of the memory if no byte is left.
            ///
            /// Cost: nothing is copied.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// # use bufcore::{BufferPool, HeapPool};
            /// let mut buf = HeapPool::new().acquire(9).unwrap();
            /// buf.extend_from_slice(b"head body").unwrap();
            /// let mut head = buf.freeze();
            /// let whole = head.clone();
            /// head.truncate(4);
            /// assert_eq!(head, "head");
            /// head.clear();
            /// // An empty view holds no memory.
            /// assert_eq!(whole.try_into_mut().unwrap(), "head body");
            /// # }
            /// ```
            #[inline]
            pub fn truncate(&mut self, len: usize) {
                if len == 0 {
                    self.clear();
                } else {
                    self.len = self.len.min(len);
                }
            }

            /// Makes the view empty and releases its share of the memory, as
            /// [`truncate`](Self::truncate) to 0 does.
            ///
            /// ```
            /// # #[cfg(feature = "alloc")] {
            /// use bufcore::SharedBytes;
            ///
            /// let mut body = SharedBytes::from(b"a body".to_vec());
            /// let sent = body.clone();
            /// body.clear(); // the queue that sends it has the only handle now
            /// assert!(body.is_empty() && sent.is_unique());
            /// # }
            /// ```
            #[inline]
            pub fn clear(&mut self) {
                drop(self.take_all());
            }

            /// Takes the view with all that it holds.
            #[cold]
            fn take_all(&mut self) -> Self {
                let empty = Self::$empty();
                core::mem::replace(self, empty)
            }
        }
    };
}

pub(super) use view_methods;

//! After a panic that was caught, pools and handles may be used as before. No call of theirs leaves
//! a half-made state behind, and what calls the user's code has nothing open meanwhile. The
//! compiler cannot see that behind pointers to cells.

use core::panic::{RefUnwindSafe, UnwindSafe};

use bufcore::BufferPool;

use crate::SlotPool;

impl<F: BufferPool + UnwindSafe> UnwindSafe for SlotPool<F> {}
impl<F: BufferPool + RefUnwindSafe> RefUnwindSafe for SlotPool<F> {}

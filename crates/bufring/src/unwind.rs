//! After a panic that was caught, pools and handles may be used as before. No call of theirs leaves
//! a half-made state behind, and what calls the user's code has nothing open meanwhile. The
//! compiler cannot see that behind pointers to cells.

use core::panic::{RefUnwindSafe, UnwindSafe};

#[cfg(feature = "std")]
use crate::LocalRing;
use crate::RingPool;

impl UnwindSafe for RingPool {}
impl RefUnwindSafe for RingPool {}
#[cfg(feature = "std")]
impl UnwindSafe for LocalRing {}
#[cfg(feature = "std")]
impl RefUnwindSafe for LocalRing {}

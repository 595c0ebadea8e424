//! Unwind safety. After a panic that was caught, buffers and views may be used as before. As a
//! `Box<[u8]>` they have no state except their bytes and a length, and leases are only looked at
//! and dropped. The compiler cannot see that of every lease.

use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::{Buf, Frozen, Lease};

impl<L: Lease> UnwindSafe for Buf<L> {}
impl<L: Lease> RefUnwindSafe for Buf<L> {}
impl<L: Lease> UnwindSafe for Frozen<L> {}
impl<L: Lease> RefUnwindSafe for Frozen<L> {}

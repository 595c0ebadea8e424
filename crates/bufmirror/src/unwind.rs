//! After a panic that was caught, the ends of a ring may be used as before. No call of theirs
//! leaves a half-made state behind, and what calls the user's code has nothing open meanwhile. The
//! compiler cannot see that behind pointers to cells.
#![cfg(feature = "std")]

use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::{Consumer, Producer};

impl UnwindSafe for Producer {}
impl RefUnwindSafe for Producer {}
impl UnwindSafe for Consumer {}
impl RefUnwindSafe for Consumer {}

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(any(miri, loom, shuttle))))]
mod shared {
    use super::{RefUnwindSafe, UnwindSafe};
    use crate::{SharedConsumer, SharedProducer};

    impl UnwindSafe for SharedProducer {}
    impl RefUnwindSafe for SharedProducer {}
    impl UnwindSafe for SharedConsumer {}
    impl RefUnwindSafe for SharedConsumer {}
}

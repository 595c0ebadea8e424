//! After a panic that was caught, pools and handles may be used as before. No call of theirs leaves
//! a half-made state behind, and nothing is open while the user's code is called. The compiler
//! cannot see that behind pointers to cells.

use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::pool::ShardPool;
use crate::waiting::Acquire;

impl UnwindSafe for ShardPool {}
impl RefUnwindSafe for ShardPool {}
impl UnwindSafe for Acquire<'_> {}
impl RefUnwindSafe for Acquire<'_> {}

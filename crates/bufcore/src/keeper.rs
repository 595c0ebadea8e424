//! The keeper: it gives the idle memory of pools back without being asked.

mod bell;
mod calls;
mod rules;
mod task;
mod thread;
mod trim;
mod watched;

pub use self::bell::Bell;
pub use self::calls::KeeperHandle;
pub use self::rules::Keeper;
pub use self::thread::KeeperThread;
pub use self::trim::{Trim, Watch, WeakPool};

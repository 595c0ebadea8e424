//! Global allocators for tests, each for a test binary of its own.

mod failing;
mod ledger;
mod reentrant;

pub use failing::Failing;
pub use ledger::Ledger;
pub use reentrant::Reentrant;

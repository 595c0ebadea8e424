//! Global allocators for tests, each for a test binary of its own.

mod counting;
mod failing;
mod ledger;

pub use counting::Counting;
pub use failing::Failing;
pub use ledger::Ledger;

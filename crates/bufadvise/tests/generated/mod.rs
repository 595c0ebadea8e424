//! Settings as the answer has them, for each strategy.

pub mod any;
pub mod bump;
pub mod ring;
pub mod shard;
pub mod slot;

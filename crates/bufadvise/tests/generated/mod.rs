//! Settings as `--emit rust` writes them, for each strategy.

pub mod bump;
pub mod heap;
pub mod ring;
pub mod shard;
pub mod slot;
pub mod vec;

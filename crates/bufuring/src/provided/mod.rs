//! Buffers that are lent to the kernel before it is known what arrives where.
//!
//! `group.rs` has the pool that they are of, `lending.rs` the buffers, `receiver.rs` what arrives,
//! and `entries.rs` the memory that tells the kernel of them.

mod entries;
mod group;
mod lending;
mod receiver;

pub(crate) use entries::{Lent, Provided};
pub use group::Group;
pub use receiver::Receiver;

//! Buffers that are lent to the kernel before it is known what arrives where.
//!
//! `group.rs` has the pool that they are of, `buffer_loans.rs` the buffers, `receiver.rs` what
//! arrives, and `buf_ring.rs` the memory that tells the kernel of them.

mod buf_ring;
mod buffer_loans;
mod group;
mod receiver;

pub(crate) use buf_ring::{BufRing, BufRingOwner};
pub use group::Group;
pub use receiver::Receiver;

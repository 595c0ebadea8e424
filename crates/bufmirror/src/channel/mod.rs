//! Bytes from one place of a program to another: between threads, through memory that is mapped
//! twice; without an operating system, through memory of the program's own; and between processes.

// First: documentation lists the methods of a type in the order of the modules that have them.
mod consumer;
mod producer;

pub(crate) mod end;
mod static_channel;
#[cfg(feature = "std")]
pub(crate) mod waking;

pub use end::End;
pub use static_channel::{StaticChannel, StaticConsumer, StaticProducer};
#[cfg(feature = "std")]
pub use waking::ends::{Consumer, Producer, channel};
#[cfg(feature = "std")]
pub use waking::wait_error::WaitError;

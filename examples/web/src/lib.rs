//! Small web servers over the bufworks buffer pools.
#![cfg(feature = "servers")]

pub mod messages;
pub mod uploads;

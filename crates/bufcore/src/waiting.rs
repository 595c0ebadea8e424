//! Requests that wait for a pool which serves one request at a time; see
//! [`crate::strategy::WaitingPool`].

mod place;
mod request;
mod teller;

pub use self::place::{Taken, WaitPlace};
pub use self::request::{Told, WaitingPool, WaitingRequest};
pub use self::teller::{Holder, Teller, WaitingRow};

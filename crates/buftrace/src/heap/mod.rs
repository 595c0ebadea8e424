//! The recorder of a program's heap, for Linux.

mod error;
mod local;
mod lock;
mod log;
mod modules;
mod output;
mod recorder;
mod stacks;
mod system;
mod table;
mod wrapper;

pub mod hooks;

pub use error::HeapError;
pub use wrapper::{RecordingAlloc, start_heap_recording, stop_heap_recording};

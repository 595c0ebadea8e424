//! The recorder of a program's heap, for Linux.

mod local;
mod lock;
mod log;
mod modules;
mod options;
mod output;
mod recorder;
mod stacks;
mod system;
mod table;
mod wrapper;

pub mod hooks;

pub use options::{HeapError, HeapOptions};
pub use wrapper::{RecordingAlloc, stop_heap_recording};

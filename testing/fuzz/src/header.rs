//! Arbitrary bytes in the header of a shared ring, as in the suite of `bufmirror`.

#[path = "../../../crates/bufmirror/tests/it/header.rs"]
mod program;

/// Runs one program.
pub fn run(data: &[u8]) {
    program::run(data);
}

//! Programs on the allocator of large blocks and its model, as in the suite of `bufalloc`.

use std::alloc::System;

use bufalloc::{Large, Upkeep};
use testkit::bytes::Bytes;

#[allow(unsafe_code, reason = "an allocator gives addresses")]
#[path = "../../../crates/bufalloc/tests/it/model.rs"]
mod model;

/// Allocators with borders of their own, over one heap, which no thread looks after.
static BORDERS: [Large; 3] = {
    let one = Large::over(System).upkeep(Upkeep::Calls);
    [one, one.threshold(0), one.threshold(1 << 20)]
};

/// Runs one program. The heap is the process's, and has what earlier programs left free.
pub fn run(data: &[u8]) {
    let (mut bytes, mut model) = (Bytes::new(data), model::Model::new(&BORDERS, false));
    while !bytes.is_empty() {
        model.step(&mut bytes);
    }
    model.end();
}

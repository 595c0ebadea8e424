//! Programs on a page heap and its model, as in the unit tests of `bufkit`.

use std::sync::Arc;

use bufkit::{Cut, Given, PageError, PageHeap, PageSource, PoolProvider, SlabShape, Span};
use testkit::bytes::Bytes;
use testkit::source::FromAllocator;

#[allow(unsafe_code, reason = "a heap gives addresses")]
#[path = "../../../crates/bufkit/src/page_heap/tests/model.rs"]
mod model;

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let limit = bytes.pick([usize::MAX, 4096, 300_000, 1 << 20, 4 << 20, 16 << 20]);
    let source = match bytes.below(4) {
        0 => PageSource::Provider(PoolProvider::new(Arc::new(FromAllocator))),
        _ => PageSource::System,
    };
    let whole = (bytes.below(4) == 0).then(|| PageHeap::with_addresses(1 << 30, limit)).flatten();
    let heap = whole.unwrap_or_else(|| PageHeap::new(source, limit));
    let mut model = model::Model::new(&heap, limit);
    while !bytes.is_empty() {
        model.step(&mut bytes, false);
    }
    model.end(0);
}

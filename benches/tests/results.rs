//! The documents of the results are what the results say.
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::path::Path;

#[test]
fn published_documents_are_what_the_results_say() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    if let Err(error) = bufbench::report::published::check(&docs) {
        panic!("{error:#}");
    }
}

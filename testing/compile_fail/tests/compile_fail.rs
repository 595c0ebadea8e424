//! T16: what must not compile, does not, and for the right reason.
//!
//! The programs lie beside the crates that they are about, in `tests/compile_fail`. They are compiled
//! here, with the few dependencies of this package. The messages are those of the
//! pinned toolchain.

use std::fs;

#[test]
fn does_not_compile() {
    let mut folders: Vec<_> = fs::read_dir("../../crates")
        .expect("the crates lie beside each other")
        .map(|entry| entry.expect("it is listed").path().join("tests/compile_fail"))
        .filter(|folder| folder.is_dir())
        .collect();
    folders.sort();
    // The vocabulary, and each strategy.
    assert!(folders.len() >= 6, "{folders:?}");
    let cases = trybuild::TestCases::new();
    for folder in folders {
        cases.compile_fail(folder.join("*.rs").to_str().expect("a name in UTF-8"));
    }
}

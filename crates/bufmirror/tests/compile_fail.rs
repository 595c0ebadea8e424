//! T16: what must not compile, does not, and for the right reason.
//!
//! The messages are those of the pinned toolchain.

#[test]
fn does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}

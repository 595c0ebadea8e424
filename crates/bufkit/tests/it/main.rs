//! The tests of the parts of pools, in one binary.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "tests have an operating system"
)]

mod orphans;
#[cfg(feature = "page-heap")]
mod pages;
mod words;

//! What every picture of results is made of, from the package that other programs draw with too.

pub use bufadvise::drawing::{colours, number, scale, svg};

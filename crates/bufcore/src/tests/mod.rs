//! Models.

mod loom;

//! Tests that look inside: models of what threads may do to each other.

mod loom;

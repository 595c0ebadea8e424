//! The pool that does not pool.

use bufcore::{ConfigError, HeapPool};

use super::whole::{Growing, Planned, Whole};
use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::Plan;

pub(super) fn engine() -> Engine {
    Engine::new(
        "heap",
        Kind::Control,
        "`HeapPool`: each buffer a fresh, zeroed allocation; frames through a `Writer`, which moves them as they grow",
    )
    .whole::<Whole<HeapPool>>()
    .sends::<Whole<HeapPool>>()
    .threads_each::<Whole<HeapPool>>()
    .frames::<Growing<HeapPool>>()
}

impl Planned for HeapPool {
    fn planned(_plan: &Plan) -> Result<Self, ConfigError> {
        Ok(Self::new())
    }
}

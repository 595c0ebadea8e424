//! Pools over one region, which serve one thread.

pub(crate) mod control_block;
pub(crate) mod freed_list;
pub(crate) mod slot_state;
pub(crate) mod stagger;

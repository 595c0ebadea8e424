//! Models, for every interleaving that loom finds. Over memory that is mapped once: loom does not
//! see mappings, nor bytes.

mod channel;
mod messages;
mod static_channel;

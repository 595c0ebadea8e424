//! The pools that users' code has for itself.

use std::any::Any;

use bufcore::BufferPool;
use bufkit::orphan;
use bufshard::ShardPool;
use bufslot::SlotPool;

/// The pools that users' code has for itself.
#[derive(Default)]
pub(crate) struct Others {
    slot: Option<SlotPool>,
    shard: Option<ShardPool>,
    held: Vec<Box<dyn Any + Send>>,
}

impl Others {
    /// Uses them, and ends them with buffers out.
    pub(crate) fn work(&mut self, which: usize) {
        let slot = self.slot.get_or_insert_with(|| SlotPool::new(512, 4).expect("settings are right"));
        let shard = self.shard.get_or_insert_with(|| ShardPool::new().expect("settings are right"));
        match which {
            0 => {
                self.held.push(Box::new(slot.acquire(100).expect("the heap serves")));
                self.held.push(Box::new(shard.acquire(100).expect("the heap serves")));
            }
            1 => {
                let mut buf = slot.acquire(100).expect("the heap serves");
                slot.grow(&mut buf, 200).expect("the heap serves");
                orphan::sweep();
            }
            2 => {
                self.slot = None;
                self.shard = None;
            }
            _ => self.held.clear(),
        }
        self.held.truncate(8);
    }
}

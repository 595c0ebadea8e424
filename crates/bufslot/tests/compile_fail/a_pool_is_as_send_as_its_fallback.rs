use std::rc::Rc;

use bufcore::{AcquireError, Buf, BufferPool, NoLease, PoolStats};
use bufslot::SlotPool;

struct Local(Rc<()>);

impl BufferPool for Local {
    type Lease = NoLease;
    fn acquire(&mut self, requested: usize) -> Result<Buf<NoLease>, AcquireError> {
        Err(AcquireError::TooLarge { requested, limit: 0 })
    }
    fn max_capacity(&self) -> usize {
        0
    }
    fn stats(&self) -> PoolStats {
        PoolStats::default()
    }
}

fn main() {
    fn sent<T: Send>(_: T) {}
    fn shared<T: Sync>(_: &T) {}
    let pool = SlotPool::builder().capacity(100).build_with(Local(Rc::new(()))).unwrap();
    shared(&pool);
    sent(pool);
}

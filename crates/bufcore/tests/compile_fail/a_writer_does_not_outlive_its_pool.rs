use bufcore::{HeapPool, Writer};

fn main() {
    let mut pool = HeapPool::new();
    let mut writer = Writer::new(&mut pool);
    let _other = pool.acquire(1);
    drop(pool);
    writer.commit(0);
}

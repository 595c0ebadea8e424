use bufshard::ShardPool;

fn main() {
    let pool = ShardPool::new().unwrap();
    let _changed = pool.thread_cache(8);
}

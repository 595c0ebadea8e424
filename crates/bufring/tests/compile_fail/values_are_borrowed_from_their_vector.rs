use bufring::RingPool;

fn main() {
    let mut ring = RingPool::new(1000).unwrap();
    let mut words = ring.acquire_vec::<u64>(2).unwrap();
    words.push(1).unwrap();
    let first = &words[0];
    drop(words);
    assert_eq!(*first, 1);
}

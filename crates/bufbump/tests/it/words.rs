//! What a pool and its leases print of themselves, and a pool's own methods.

use bufbump::BumpPool;

#[test]
fn handles_print_what_they_know() {
    let pool = BumpPool::builder().shard_size(4096).build().expect("settings are right");
    let mut buf = pool.acquire(10).expect("room");
    buf.extend_from_slice(b"secret").expect("room");
    let stats = pool.stats();
    let text = format!(
        "BumpPool {{ shard_size: {}, in_use: 1, reserved_bytes: {}, pinned_bytes: {}, .. }}",
        pool.shard_size(),
        stats.reserved_bytes,
        stats.pinned_bytes
    );
    assert_eq!(format!("{pool:?}"), text);
    assert_eq!(format!("{:?}", buf.lease()), "BumpLease { is_shared: false, .. }");
    let rest = buf.split_off(3);
    assert_eq!(
        format!("{:?} {:?}", buf.lease(), rest.lease()),
        ["BumpLease { is_shared: true, .. }"; 2].join(" ")
    );
}

/// Through a shared reference, as all that it does.
#[test]
fn a_buffer_grows_into_a_larger_one() {
    let pool = BumpPool::builder().shard_size(4096).build().expect("settings are right");
    let mut small = pool.acquire(3).expect("room");
    small.extend_from_slice(b"abc").expect("room");
    for additional in [3, 100, 50_000] {
        pool.grow(&mut small, additional).expect("room");
        assert_eq!((&small[..], small.capacity()), (&b"abc"[..], 3 + additional));
    }
    assert_eq!(pool.stats().in_use, 1, "the smaller ones are back");
}

/// The newest buffer of the shard that the thread carves grows where it is, into what is left of
/// the shard; any other moves, unless its own bytes are enough.
#[test]
fn the_newest_grows_in_place() {
    let pool = BumpPool::builder().shard_size(4032).build().expect("settings are right");
    let mut first = pool.acquire(100).expect("room");
    first.resize(100, 1).expect("room");
    let start = first.as_ptr();
    pool.grow(&mut first, 900).expect("room");
    assert_eq!((first.as_ptr(), first.capacity()), (start, 1000));
    // Twice the filled bytes, where that is in place as well.
    first.resize(1000, 1).expect("room");
    pool.grow(&mut first, 1).expect("room");
    assert_eq!((first.as_ptr(), first.capacity()), (start, 2000));
    let mut second = pool.acquire(100).expect("room");
    second.resize(100, 2).expect("room");
    assert!(second.as_ptr().addr() >= start.addr() + 2000, "behind it");
    // What is left, to the last byte, and no more.
    let left = 4032 - (second.as_ptr().addr() - start.addr());
    pool.grow(&mut second, left - 100).expect("room");
    assert_eq!(second.capacity(), left);
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.pinned_bytes), (2, 4096));
    // What was shrunk has its own bytes.
    pool.shrink(&mut first);
    let filled = first.len();
    pool.grow(&mut first, 500).expect("room");
    assert_eq!((first.as_ptr(), first.capacity()), (start, 2 * filled));
    // Parts share the memory.
    let mut rest = first.split_off(500);
    pool.grow(&mut first, 1).expect("room");
    assert_ne!(first.as_ptr(), start, "it moved");
    pool.grow(&mut rest, 2000).expect("room");
    assert!(first.iter().chain(&*rest).all(|byte| *byte == 1) && second.iter().all(|byte| *byte == 2));
    // On another thread it is not the newest of anything.
    let theirs = pool.clone();
    let moved = std::thread::spawn(move || {
        let before = second.as_ptr();
        theirs.grow(&mut second, 3000).expect("room");
        (second.as_ptr() != before, second)
    });
    let (is_moved, second) = moved.join().expect("the thread ends well");
    assert!(is_moved && second.iter().all(|byte| *byte == 2));
    drop((first, rest, second));
    // Nor is one behind which there is another.
    let [mut older, newer] = [(); 2].map(|()| pool.acquire(100).expect("room"));
    older.resize(100, 3).expect("room");
    let before = older.as_ptr();
    pool.grow(&mut older, 1000).expect("room");
    assert_ne!(older.as_ptr(), before, "it moved");
    drop((older, newer));
    let stats = pool.stats();
    assert_eq!((stats.in_use, stats.in_use_bytes), (0, 0));
}

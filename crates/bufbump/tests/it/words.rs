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

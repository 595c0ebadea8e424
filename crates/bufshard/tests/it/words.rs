//! What a pool, its leases and its futures print of themselves, and a pool's own methods.

use bufcore::AcquireError;
use bufshard::ShardPool;

#[test]
fn handles_print_what_they_know() {
    let pool = ShardPool::builder().max_bytes(100_000).build().expect("settings are right");
    let mut buf = pool.acquire(1000).expect("room");
    buf.extend_from_slice(b"secret").expect("room");
    let text = format!(
        "ShardPool {{ largest_pooled: {}, reserved_bytes: {}, .. }}",
        pool.largest_pooled(),
        pool.stats().reserved_bytes
    );
    assert_eq!(format!("{pool:?}"), text);
    assert_eq!(format!("{:?}", pool.acquire_async(777)), "Acquire { bytes: 777, .. }");
    assert_eq!(format!("{:?}", buf.lease()), "ShardLease { is_shared: false, .. }");
    let rest = buf.split_off(3);
    assert_eq!(
        format!("{:?} {:?}", buf.lease(), rest.lease()),
        ["ShardLease { is_shared: true, .. }"; 2].join(" ")
    );
}

/// A bound that is none is a setting as any other is.
#[test]
fn builders_print_large_bounds() {
    for bytes in [1, 8 << 20, isize::MAX as usize, usize::MAX] {
        let builder = ShardPool::builder().max_cached_bytes(bytes);
        let text = builder.to_string();
        let number = text.strip_prefix("max_cached_bytes=").expect("it differs from the default");
        let bound = number
            .strip_suffix("MiB")
            .map_or_else(|| number.parse(), |mib| mib.parse().map(|n: usize| n << 20));
        assert_eq!(bound, Ok(bytes.min(isize::MAX as usize)), "{text}");
        #[cfg(feature = "serde")]
        {
            let text = serde_json::to_string(&builder).expect("numbers");
            let json: serde_json::Value = serde_json::from_str(&text).expect("as it was written");
            assert!(json["max_cached_bytes"].is_i64(), "formats whose integers have a sign: {text}");
            assert_eq!(serde_json::from_str::<bufshard::Builder>(&text).expect("as above"), builder);
        }
    }
}

/// Through a shared reference, as all that it does. What is over the budget leaves the buffer as it
/// is.
#[test]
fn a_buffer_grows_into_a_larger_one() {
    let pool = ShardPool::builder().max_bytes(100_000).build().expect("settings are right");
    let mut small = pool.acquire(3).expect("room");
    small.extend_from_slice(b"abc").expect("room");
    for additional in [3, 100, 50_000] {
        pool.grow(&mut small, additional).expect("room");
        assert_eq!((&small[..], small.capacity()), (&b"abc"[..], 3 + additional));
    }
    let refused = pool.grow(&mut small, 90_000).expect_err("both do not fit");
    assert!(matches!(refused, AcquireError::Exhausted { requested: 90_000, .. }), "{refused}");
    assert!(matches!(pool.grow(&mut small, 200_000), Err(AcquireError::TooLarge { requested: 200_000, .. })));
    assert_eq!((&small[..], small.capacity()), (&b"abc"[..], 50_003));
}

/// Without the counters there is nothing to restart.
#[test]
fn high_water_starts_again() {
    let pool = ShardPool::builder().build().expect("settings are right");
    let bufs = [pool.acquire(100).expect("room"), pool.acquire(200).expect("room")];
    let [first, second] = bufs;
    let marks = || (pool.stats().high_water, pool.stats().high_water_bytes);
    let out = || (pool.stats().in_use, pool.stats().in_use_bytes);
    let most = out();
    drop(second);
    if cfg!(feature = "stats") {
        assert!(most.0 == 2 && most.1 >= 300 && marks() == most, "{most:?}");
        pool.reset_high_water();
        assert!(marks() == out() && marks().0 == 1, "{:?}", marks());
    } else {
        pool.reset_high_water();
        assert_eq!(marks(), (0, 0));
    }
    drop(first);
}

/// A buffer grows in place within its size class, whatever is consumed in front; a part does not.
#[test]
fn the_rest_of_a_class_is_room() {
    let pool = ShardPool::builder().max_bytes(100_000).build().expect("settings are right");
    for (bytes, class) in [(65, 80), (100_000 - 20_000, 80 << 10)] {
        let mut buf = pool.acquire(bytes).expect("room");
        buf.resize(bytes, 7).expect("room");
        let start = buf.as_ptr();
        pool.grow(&mut buf, class - bytes).expect("in place");
        assert_eq!((buf.as_ptr(), buf.capacity()), (start, class));
        assert!(pool.grow(&mut buf, class - bytes + 1).is_err() == (class > 1000), "no more");
        pool.shrink(&mut buf);
        assert_eq!(buf.capacity(), bytes);
        assert!(buf.iter().all(|byte| *byte == 7) && buf.len() == bytes);
    }
    let mut buf = pool.acquire(65).expect("room");
    buf.resize(65, 7).expect("room");
    let start = buf.as_ptr();
    let rest = buf.split_off(60);
    pool.grow(&mut buf, 10).expect("room");
    assert_ne!(buf.as_ptr(), start, "it moved, away from the other part");
    assert!(rest.iter().chain(&*buf).all(|byte| *byte == 7));
}

//! The allocator refuses a keeper memory: it goes on with what it has.
#![allow(clippy::std_instead_of_alloc, reason = "tests have an operating system")]

use std::sync::Arc;
use std::time::Instant;

use bufkeeper::{Keeper, Pressure, PressureSource};
use testkit::alloc::Failing;
use testkit::trials::keeper::Nothing;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// A source of pressure is read when memory is short: what has no memory is not known.
#[test]
fn pressure() {
    let root = std::env::temp_dir().join(format!("bufkeeper-oom-{}", std::process::id()));
    let files = [
        ("proc/self/cgroup", "0::/app\n4:memory:/app\n"),
        (
            "proc/self/mountinfo",
            "30 23 0:27 / /second rw - cgroup2 cgroup2 rw\n35 31 0:32 / /first rw - cgroup cgroup rw,memory\n",
        ),
        ("proc/pressure/memory", "some avg10=20.00\nfull avg10=1.00\n"),
        ("second/app/memory.current", "90\n"),
        ("second/app/memory.max", "100\n"),
        ("second/app/memory.pressure", "some avg10=20.00\nfull avg10=1.00\n"),
        ("first/app/memory.usage_in_bytes", "90\n"),
        ("first/app/memory.limit_in_bytes", "100\n"),
    ];
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("there is room");
        std::fs::write(path, text).expect("there is room");
    }
    let source = PressureSource::under(&root);
    let all = source.read();
    assert!(all.memory.is_some() && all.stall.is_some(), "{all:?}");
    let (read, refused) = Failing::after(0, || source.read());
    assert!(read == Pressure::default() && refused > 0, "{read:?}, {refused} refused");
    for allowed in 1..20 {
        let _some = Failing::after(allowed, || source.read());
    }
    let _ = std::fs::remove_dir_all(root);
}

/// A keeper that is refused memory for its list looks at what it has, and at the rest later.
#[test]
fn keeper() {
    let pools: Vec<_> = (0..1001).map(|_| Arc::new(Nothing)).collect();
    let mut keeper = Keeper::new().pressure(PressureSource::none());
    let handle = keeper.handle();
    for pool in &pools[..1000] {
        handle.watch(pool);
    }
    let now = Instant::now();
    let (_, refused) = Failing::after(0, || keeper.tick(now));
    assert_eq!((keeper.watched(), refused), (0, 1));
    handle.watch(&pools[1000]);
    keeper.tick(now);
    assert_eq!(keeper.watched(), 1001);
}

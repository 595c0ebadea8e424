//! The suite over rings of several sizes and over the kinds of regions.

use bufcore::Region;
use bufring::{Builder, RingPool};

testkit::conformance! {
    name: heap,
    pool: RingPool = || RingPool::new(1 << 20).expect("settings are right"),
    is_fallback: |_| false,
    rejects: true,
    trim: testkit::trials::trim,
    sized: RingPool::new,
    aligned: |bytes| RingPool::builder().capacity(1 << 20).alignment(bytes).build(),
    promised: |n, bytes| {
        RingPool::builder().capacity(n * bytes).buffers(n).build().expect("settings are right")
    },
}

testkit::conformance! {
    name: small,
    pool: RingPool = || {
        let region = Region::heap(80_000, 1).expect("the heap has room");
        Builder::new().build_in(region).expect("settings are right")
    },
    is_fallback: |_| false,
    rejects: true,
    share: 5,
    trim: testkit::trials::trim,
    promised: |n, bytes| {
        let settings = Builder::new().capacity(n * bytes).buffers(n).alignment(256);
        let region = Region::heap(settings.required_bytes().expect("settings are right"), 1);
        settings.build_in(region.expect("the heap has room")).expect("settings are right")
    },
}

// With guards of a whole alignment.
testkit::conformance! {
    name: pages,
    pool: RingPool = || RingPool::builder().capacity(1 << 20).alignment(512).build().expect("settings are right"),
    is_fallback: |_| false,
    rejects: true,
    share: 5,
    trim: testkit::trials::trim,
    promised: |n, bytes| {
        let settings = Builder::new().capacity(n * bytes).buffers(n).alignment(4096);
        let region = Region::heap(settings.required_bytes().expect("settings are right"), 1);
        settings.build_in(region.expect("the heap has room")).expect("settings are right")
    },
}

#[cfg(feature = "mmap")]
testkit::conformance! {
    name: mapped,
    pool: RingPool = || {
        let region = Region::mapped(1 << 20, bufcore::MapOptions::new()).expect("the system maps");
        Builder::new().build_in(region).expect("settings are right")
    },
    is_fallback: |_| false,
    rejects: true,
    share: 5,
    trim: testkit::trials::trim,
    sized: |bytes| -> Result<RingPool, bufcore::Error> {
        let region = Region::mapped(bytes.saturating_add(8192), bufcore::MapOptions::new())?;
        Ok(Builder::new().capacity(bytes).build_in(region)?)
    },
}

#[cfg(feature = "wipe")]
testkit::conformance! {
    name: wiping,
    pool: RingPool = || {
        RingPool::builder().capacity(1 << 18).wipe(true).build().expect("settings are right")
    },
    is_fallback: |_| false,
    rejects: true,
    share: 5,
    trim: testkit::trials::trim,
    wiping: || {
        RingPool::builder().capacity(20_000).buffers(8).wipe(true).build().expect("settings are right")
    },
}

/// A million operations on a ring that is full most of the time: split, merged, wrapped, grown,
/// frozen, released on other threads, forgotten.
#[test]
fn long_programs() {
    let kit = testkit::Kit::<RingPool> {
        make: || RingPool::new(150_000).expect("settings are right"),
        is_fallback: |_| false,
        rejects: true,
        share: 1,
        trim: testkit::trials::trim,
    };
    testkit::ops::run_long(&kit, 600, testkit::trials::scaled(1_000_000));
}

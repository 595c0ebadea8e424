//! The suite over slot pools: with the heap as fallback, with none, and over the kinds of regions.

use bufcore::{ConfigError, NoFallback, Region};
use bufslot::{Builder, SlotPool};

testkit::conformance! {
    name: heap,
    pool: SlotPool = || SlotPool::new(1 << 20, 64).expect("settings are right"),
    is_fallback: |buf| buf.lease().is_fallback(),
    rejects: false,
    trim: testkit::trials::trim,
    sized: |bytes| SlotPool::new(bytes, 8),
    aligned: |bytes| -> Result<SlotPool, ConfigError> {
        SlotPool::builder().capacity(1 << 20).slots(16).alignment(bytes).build()
    },
    over: |hostile| SlotPool::builder().capacity(4096).build_with(hostile).expect("settings are right"),
}

testkit::conformance! {
    name: rejecting,
    pool: SlotPool<NoFallback> = || SlotPool::builder().capacity(1 << 20).slots(1000).build_with(NoFallback).expect("settings are right"),
    is_fallback: |buf| buf.lease().is_fallback(),
    rejects: true,
    trim: testkit::trials::trim,
    sized: |bytes| SlotPool::builder().capacity(bytes).slots(8).build_with(NoFallback),
    aligned: |bytes| SlotPool::builder().capacity(1 << 20).slots(16).alignment(bytes).build_with(NoFallback),
    promised: |n, bytes| rejecting_for(n, bytes, 1),
}

testkit::conformance! {
    name: eight_slots,
    pool: SlotPool<NoFallback> = || {
        let region = Region::heap(80_000, 1).expect("the heap has room");
        Builder::new().build_in(region, NoFallback).expect("settings are right")
    },
    is_fallback: |buf| buf.lease().is_fallback(),
    rejects: true,
    share: 5,
    trim: testkit::trials::trim,
    promised: |n, bytes| {
        let builder = Builder::new().slots(n).capacity(n * bytes);
        let region = Region::heap(builder.required_bytes().expect("settings are right"), 1);
        builder.build_in(region.expect("the heap has room"), NoFallback).expect("settings are right")
    },
}

/// A pool for `n` buffers of `bytes` bytes each at once, as the guide says.
fn rejecting_for(n: usize, bytes: usize, alignment: usize) -> SlotPool<NoFallback> {
    let capacity = n * bytes.next_multiple_of(alignment);
    let builder = SlotPool::builder().capacity(capacity).slots(n).alignment(alignment);
    builder.build_with(NoFallback).expect("settings are right")
}

/// T27 for buffers whose starts are aligned.
#[test]
fn t27_equal_aligned_buffers() {
    for alignment in [2, 32, 64, 128, 256, 4096] {
        testkit::trials::refusing::t27_equal_buffers(
            |n, bytes| rejecting_for(n, bytes, alignment),
            |buf| buf.lease().is_fallback(),
        );
    }
}

#[cfg(feature = "mmap")]
testkit::conformance! {
    name: mapped,
    pool: SlotPool = || {
        let region = Region::mapped(1 << 20, bufcore::MapOptions::new()).expect("the system maps");
        Builder::new().slots(64).build_in(region, bufcore::HeapPool::new()).expect("settings are right")
    },
    is_fallback: |buf| buf.lease().is_fallback(),
    rejects: false,
    share: 5,
    trim: testkit::trials::trim,
    sized: |bytes| -> Result<SlotPool, bufcore::Error> {
        let region = Region::mapped(bytes.saturating_add(8192), bufcore::MapOptions::new())?;
        Ok(Builder::new().capacity(bytes).build_in(region, bufcore::HeapPool::new())?)
    },
}

#[cfg(feature = "wipe")]
testkit::conformance! {
    name: wiping,
    // Refusing, because the heap would serve, and so have to wipe, gigabytes.
    pool: SlotPool<NoFallback> = || {
        SlotPool::builder().capacity(1 << 18).slots(16).wipe(true).build_with(NoFallback).expect("settings are right")
    },
    is_fallback: |buf| buf.lease().is_fallback(),
    rejects: true,
    share: 5,
    trim: testkit::trials::trim,
    wiping: || {
        SlotPool::builder().capacity(20_000).wipe(true).build_with(NoFallback).expect("settings are right")
    },
}

/// The heap as fallback wipes as its pool does.
#[cfg(feature = "wipe")]
#[test]
fn t11_wiped_fallback() {
    testkit::ops::run_wiping(|| {
        SlotPool::builder().capacity(6000).slots(4).wipe(true).build().expect("settings are right")
    });
}

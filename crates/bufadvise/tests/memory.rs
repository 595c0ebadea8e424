//! The memory that a replay finds is what a candidate holds: compared with exact counts, for pools from
//! 64 KiB to 64 MiB.
#![cfg(target_os = "linux")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bufworks::any::AnyBuilder;
use serde_json::Value;

const KIB: u64 = 1 << 10;
const PAGE_BYTES: usize = 4096;
/// What a pool's own tables, its handle and its thread may add.
const OVERHEAD: u64 = 48 * KIB;
/// The first number of a schedule (`src/advise/wire.rs`).
const MAGIC: u32 = 0x6275_6661;

/// What a child process gets: one thread takes `count` buffers of `bytes`, holds them all,
/// and drops them. Memory is measured in between.
fn schedule(name: &str, count: u32, bytes: u64) -> PathBuf {
    let mut numbers = vec![MAGIC, count, count, 1, u32::MAX, 1, 2 * count + 1, 1, count, 0];
    numbers.extend((0..count).flat_map(|place| [1, 0, bytes as u32, place, 0]));
    numbers.extend([3, 0, 0, 0, 0]);
    numbers.extend((0..count).flat_map(|place| [2, 0, place, bytes as u32, 0]));
    let file: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("memory-{name}"));
    fs::write(&path, file).expect("the file is written");
    path
}

/// The memory that is found for these settings.
fn found(schedule: &Path, settings: &str) -> u64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bufadvise"));
    command.arg("child").arg(settings);
    command.stdin(fs::File::open(schedule).expect("it was written"));
    let output = command.output().expect("the program starts");
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!((&said["wrong"], &said["refused"]), (&0.into(), &0.into()), "{said}");
    said["bytes"].as_u64().unwrap_or_else(|| panic!("no memory: {said}"))
}

/// An exact count: the pages that the buffers are on which such a pool hands out.
fn pages(settings: &str, count: u32, bytes: u64) -> u64 {
    let mut pool = settings.parse::<AnyBuilder>().expect("settings").build().expect("a pool");
    let held: Vec<_> = (0..count).map(|_| pool.acquire(bytes as usize).expect("there is room")).collect();
    let mut pages = BTreeSet::new();
    for buf in &held {
        let start = buf.as_ptr().addr();
        pages.extend(start / PAGE_BYTES..=(start + bytes as usize - 1) / PAGE_BYTES);
    }
    (pages.len() * PAGE_BYTES) as u64
}

#[test]
fn memory_is_what_the_pools_hold() {
    for power in [16, 18, 20, 22, 24, 26] {
        let capacity: u64 = 1 << power;
        let (count, bytes) = (16, capacity / 16 - 64);
        let schedule = schedule(&format!("full-{power}"), count, bytes);
        for settings in [
            format!("slot:capacity={capacity},slots=16"),
            format!("ring:capacity={capacity},buffers=16"),
            format!("bump:shard_size={capacity}"),
        ] {
            let exact = pages(&settings, count, bytes);
            let memory = found(&schedule, &settings);
            let most = exact + exact / 50 + OVERHEAD;
            // The region may begin in another place of its first page.
            let least = exact - 2 * PAGE_BYTES as u64;
            assert!((least..=most).contains(&memory), "{settings}: {memory}, and its buffers are on {exact}");
        }
        // Without a pool it is what was asked for, and what the allocator adds.
        let memory = found(&schedule, "vec");
        let out = u64::from(count) * bytes;
        // What the allocator had left over is not new.
        assert!(
            (out - 4 * PAGE_BYTES as u64..=out + out / 10 + 2 * OVERHEAD).contains(&memory),
            "vec: {memory} for {out}"
        );
    }
}

/// A pool that hands out far more than it is asked for pays for the pages that are touched.
#[test]
fn memory_that_nobody_touches_is_address_space() {
    // With huge pages for everybody, the first byte of one makes all of it resident. They are refused to
    // this program, and to those that it starts.
    // SAFETY: no pointers are passed.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
    let schedule = schedule("sparse", 16, 1000);
    let settings = "slot:capacity=64MiB,slots=16";
    let memory = found(&schedule, settings);
    let exact = self::pages(settings, 16, 1000);
    assert!(memory <= exact + OVERHEAD, "{memory}, and its buffers are on {exact}");
}

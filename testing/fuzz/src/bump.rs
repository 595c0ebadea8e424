//! Operations on a bump pool. There are buffers that are split, moved and released on other threads, handles that come and go, large pieces
//! that are kept, and a keeper beside it all.

use std::time::Duration;

use bufbump::{Builder, BumpPool, HugePages, MapOptions};
use testkit::bytes::Bytes;
use testkit::identities;
use testkit::lockstep::Lockstep;

use crate::drive::{Drive, End};
use crate::shared::Shared;

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let shard_size = bytes.pick([64, 300, 1024, 4096, 8192, 20_000, 70_000]);
    let builder = Builder::new()
        .shard_size(shard_size)
        .max_probes(bytes.below(4))
        .max_idle_bytes(shard_size * bytes.below(6))
        .alignment(1 << bytes.below(13))
        .preallocate(bytes.below(3));
    let flags = bytes.byte();
    let (wipes, end) = (flags & 1 != 0, End::of(flags >> 4));
    // Room for pieces larger than a shard, of most sizes.
    let builder = if flags & 2 != 0 { builder.max_idle_bytes(1 << 20) } else { builder };
    let builder = if flags & 4 != 0 { mapped(builder, &mut bytes) } else { builder };
    let pool = builder.wipe(wipes).build().expect("settings are right");
    let mut lockstep = Lockstep::over(pool, false);
    if wipes {
        lockstep.set_zeroed(|buf| !buf.lease().is_fallback());
    }
    let mut drive = Drive::new(lockstep);
    let mut shared = Shared::new(|pool: &BumpPool| Some(pool.clone()));
    drive.run(&mut bytes, |drive, bytes| {
        let lockstep = &mut drive.lockstep;
        match bytes.below(16) {
            0 => lockstep.pool().trim(),
            1..=2 => {
                let (at, ratio) = (bytes.below(256), bytes.below(64));
                lockstep.exchange(at, |pool, buf| pool.evacuate(buf, ratio));
            }
            // Larger than a shard, and of a size that comes again.
            3..=4 => {
                let pool = lockstep.pool();
                let size = (pool.shard_size() + 1) * (1 + bytes.below(4));
                let buf = pool.acquire(size).expect("the heap serves");
                lockstep.admit(buf, size, Vec::new());
            }
            5..=6 => sums(lockstep),
            _ => shared.step(lockstep, bytes),
        }
    });
    shared.clear();
    if !end.pool_first && drive.release(end) {
        sums(&mut drive.lockstep);
        let pool = drive.lockstep.pool();
        let stats = pool.stats();
        assert_eq!((stats.in_use, stats.pinned_bytes), (0, 0), "all was released: {stats:?}");
        // The first look notes, and the second one frees.
        (0..2).for_each(|_| pool.trim_idle(Duration::ZERO));
        pool.trim();
    }
    drive.finish(end);
    shared.end();
}

/// With mappings, of pages that are not there from the start where they are huge: that would be 2 MiB for each.
fn mapped(builder: Builder, bytes: &mut Bytes<'_>) -> Builder {
    let options = bytes.byte();
    let pages = match options & 3 {
        0 => MapOptions::new().huge_pages(HugePages::Advise),
        _ => MapOptions::new().populate(options & 4 != 0),
    };
    builder.map_options(pages)
}

/// The counts add up, and what is out is reserved.
fn sums(lockstep: &mut Lockstep<BumpPool>) {
    let own = lockstep.own_bytes(|_| false);
    let (is_clear, claimed) = (lockstep.is_clear(), lockstep.claimed_bytes());
    let totals = lockstep.pool().stats();
    identities::check(&totals, own, is_clear);
    assert_eq!(totals.reserved_bytes, totals.idle_bytes + totals.pinned_bytes, "{totals:?}");
    assert!(claimed <= totals.pinned_bytes, "{claimed} bytes are out: {totals:?}");
}

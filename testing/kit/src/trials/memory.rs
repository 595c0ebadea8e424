//! T12 and T19: memory stays bounded, and comes back. Both run in a process of their own.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use bufcore::{Buf, BufferPool, SplitLease, Writer};
use bufkeeper::Trim;

use super::scaled;
use crate::Kit;
use crate::append::Append;
use crate::process::{
    keeping_allocator, open_files, resident_bytes, resident_bytes_as_it_is, steady_allocator,
};

const MIB: usize = 1 << 20;
/// What the process may keep on top: the allocator's own lists, thread stacks, the test harness.
const SLACK_BYTES: usize = 10 * MIB;

/// Makes the buffer's pages resident.
fn touch<P: BufferPool<Lease: SplitLease>>(pool: &mut P, bytes: usize) -> Option<Buf<P::Lease>> {
    let mut buf = pool.acquire(bytes).ok()?;
    buf.resize(bytes, 0xA5).expect("there is room");
    Some(buf)
}

/// Checks that after a high peak, many sizes, dead threads and an oversize buffer, a drained pool
/// holds what it says it reserves, and after its drop nothing (T12).
pub fn bounded<P: BufferPool<Lease: SplitLease>>(kit: &Kit<P>) {
    steady_allocator();
    let base = resident_bytes();
    let mut pool = (kit.make)();
    let check = |pool: &P, what: &str| {
        let reserved = pool.stats().reserved_bytes;
        let held = resident_bytes().saturating_sub(base);
        let bound = reserved + reserved / 10 + SLACK_BYTES;
        assert!(
            held <= bound,
            "after {what}: {held} bytes resident, {bound} allowed for {reserved} reserved"
        );
    };
    // A peak of 1 GiB, all of it alive at once where the pool gives it.
    let peak = scaled(1024) * MIB;
    let mut alive = Vec::new();
    let mut taken = 0;
    while taken < peak {
        let Some(buf) = touch(&mut pool, 64 << 10) else { break };
        taken += buf.capacity();
        alive.push(buf);
    }
    assert!(kit.rejects || taken >= peak, "{taken} of {peak} bytes");
    let resident = resident_bytes();
    assert!(
        resident >= taken,
        "{taken} bytes are alive, {resident} are resident: the trial measures nothing"
    );
    drop(alive);
    check(&pool, "a peak");
    // Ten thousand sizes, one alive at a time.
    for index in 0..scaled(10_000) {
        drop(touch(&mut pool, 1 + index * 13 % (256 << 10)));
    }
    check(&pool, "many sizes");
    // A thousand threads that are gone.
    for _ in 0..scaled(1000) {
        let buf = touch(&mut pool, 32 << 10);
        thread::spawn(move || drop(buf)).join().expect("dropping does not panic");
    }
    check(&pool, "dead threads");
    // One that is larger than what it is used for later.
    for _ in 0..20 {
        drop(touch(&mut pool, 32 * MIB));
        drop(touch(&mut pool, 16));
    }
    check(&pool, "an oversize buffer");
    let mut writer = Writer::new(&mut pool);
    for _ in 0..20 {
        if let Ok(room) = writer.append(16 * MIB) {
            room.fill(1);
        }
        drop(writer.finish());
    }
    drop(writer);
    check(&pool, "large frames");
    drop(pool);
    let after = resident_bytes();
    assert!(after <= base + SLACK_BYTES, "{after} bytes resident after the drop, {base} before");
    // Pools that went with buffers out.
    for _ in 0..scaled(2000) {
        let mut pool = (kit.make)();
        let bufs: Vec<_> = (0..4).filter_map(|_| touch(&mut pool, 64 << 10)).collect();
        drop(pool);
        drop(bufs);
    }
    bufkit::orphan::sweep();
    let after = resident_bytes();
    assert!(after <= base + SLACK_BYTES, "{after} bytes resident after pools that went first, {base} before");
}

/// Runs traffic, pools that go first and threads that end, for `BUFTEST_SOAK_SECONDS` (1 unless
/// set). After a warm-up neither resident memory nor descriptors grow (T19).
pub fn soak<P: BufferPool<Lease: SplitLease> + Send>(kit: &Kit<P>) {
    let seconds =
        env::var("BUFTEST_SOAK_SECONDS").map_or(1, |text| text.parse().expect("a number of seconds"));
    steady_allocator();
    let whole = Duration::from_secs(seconds);
    let started = Instant::now();
    let mut rng = fastrand::Rng::with_seed(19);
    let mut samples = Vec::new();
    while started.elapsed() < whole || samples.len() < 16 {
        let mut pool = (kit.make)();
        let mut left = Vec::new();
        for _ in 0..4 {
            let bufs: Vec<_> = (0..64).filter_map(|_| touch(&mut pool, rng.usize(..64 << 10))).collect();
            let (mine, theirs): (Vec<_>, Vec<_>) =
                bufs.into_iter().enumerate().partition(|(i, _)| i % 2 == 0);
            thread::scope(|scope| {
                scope.spawn(move || {
                    for (index, buf) in theirs {
                        assert!(buf.iter().all(|&byte| byte == 0xA5), "buffer {index} was changed");
                    }
                });
            });
            left.extend(mine.into_iter().take(3));
        }
        // The pool goes first; what is left goes away on another thread.
        drop(pool);
        thread::scope(|scope| {
            scope.spawn(move || drop(left));
        });
        bufkit::orphan::sweep();
        samples.push((resident_bytes(), open_files()));
    }
    // The second quarter against the last: what the first one sets up does not count.
    let quarter = samples.len() / 4;
    let mean = |part: &[(usize, usize)]| part.iter().map(|sample| sample.0).sum::<usize>() / part.len();
    let early = mean(&samples[quarter..2 * quarter]);
    let late = mean(&samples[3 * quarter..]);
    assert!(
        late <= early + 4 * MIB,
        "resident memory grew from {early} to {late} bytes in {} rounds",
        samples.len()
    );
    let files = |part: &[(usize, usize)]| part.iter().map(|sample| sample.1).max();
    assert_eq!(files(&samples[3 * quarter..]), files(&samples[quarter..2 * quarter]), "descriptors");
}

/// Checks that large memory which a pool does not keep reaches the system when it is released,
/// though the allocator keeps what it gets: from the first look of a keeper on, and not before. The
/// pools keep at most 1 MiB. It runs alone.
pub fn large_memory_goes<P: BufferPool<Lease: SplitLease> + Trim>(make: impl Fn() -> P) {
    keeping_allocator();
    for is_watched in [true, false] {
        let mut pool = make();
        if is_watched {
            pool.trim_idle(Duration::ZERO);
        }
        let before = resident_bytes_as_it_is();
        let mut bufs: Vec<_> = (0..64).map(|_| pool.acquire(MIB).expect("room")).collect();
        bufs.iter_mut().for_each(|buf| buf.resize(MIB, 1).expect("asked for"));
        assert!(resident_bytes_as_it_is() > before + 60 * MIB);
        drop(bufs);
        let kept = resident_bytes_as_it_is().saturating_sub(before);
        println!("resident: {kept} bytes more than before, watched: {is_watched}");
        // In 32 bits glibc has not so much in one piece, and gives it back.
        let stays = kept > 32 * MIB || cfg!(target_pointer_width = "32");
        assert!(if is_watched { kept < 4 * MIB } else { stays }, "{kept} bytes are kept");
    }
}

//! Models of releases, of threads that end, and of the end of a pool, for every interleaving that
//! loom finds.
//!
//! loom sees its own atomics and cells only, not the raw bytes of a shard. So a `Shadow` cell
//! stands for the bytes. It is written and read where a user of the buffer would, and the one in
//! each shard where whoever frees its memory does. A missing order shows as a race on it.
//!
//! The thread that looks for released memory yields before: loom notes only the last access to an
//! atomic, and starts from an execution in which the release came first.
//!
//! With the known defects `relaxed`, of this package and of `bufcore`, these models fail.

use alloc::vec::Vec;

use bufcore::{Buf, Frozen};
use bufkit::orphan;
use bufkit::sync::{AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};
use testkit::models::{self, Shadow};

use crate::cache::local;
use crate::shard::{Block, HEADER_BYTES, newly_freed};
use crate::{BumpLease, BumpPool};

loom::lazy_static! {
    /// Shards whose memory was freed.
    static ref FREED: AtomicUsize = AtomicUsize::new(0);
}

/// Called where the memory that it stands for is freed.
pub(crate) fn goes(shadow: &Shadow) {
    shadow.write();
    // ORDER: Relaxed: a count.
    FREED.fetch_add(1, Ordering::Relaxed);
}

/// Shards whose memory was freed.
pub(super) fn freed() -> usize {
    // ORDER: Relaxed: read after all threads were joined.
    FREED.load(Ordering::Relaxed)
}

/// Uses a buffer's memory.
pub(super) fn touch(buf: &Buffer) {
    let block = buf.lease().block().expect("a buffer of some bytes");
    // SAFETY: the buffer is out.
    let shard = unsafe { Block::shard(block) };
    shard.into_iter().for_each(|shard| _ = shard.shadow.read());
}

/// Uses the memory of a buffer that is alone in its shard.
pub(super) fn scribble(buf: &Buffer) {
    let block = buf.lease().block().expect("a buffer of some bytes");
    // SAFETY: the buffer is out.
    unsafe { Block::shard(block) }.expect("a buffer in a shard").shadow.write();
}

pub(super) type Buffer = Buf<BumpLease>;

/// Bytes of a shard's span, which is a page.
pub(super) const SPAN: usize = 4096;
/// A buffer of so many bytes has a shard alone.
pub(super) const ONE: usize = SPAN - HEADER_BYTES;
/// Two of so many share one.
const HALF: usize = SPAN / 2 - HEADER_BYTES;

/// A pool whose shards hold one buffer of the largest size, or two where `two` says so.
fn pool(two: bool) -> BumpPool {
    let bytes = if two { HALF } else { ONE };
    BumpPool::builder().shard_size(bytes).max_idle_bytes(4 * SPAN).build().expect("a small pool")
}

fn acquire(pool: &BumpPool) -> Buffer {
    pool.acquire(pool.shard_size()).expect("the allocator has room")
}

/// Acquires, and writes if the memory is the one that was at `address`.
fn acquire_again(pool: &BumpPool, address: *const u8, shadow: &Shadow) -> Buffer {
    models::acquire_again(pool, pool.shard_size(), address, shadow)
}

/// Runs `f` with a handle of the pool on a thread of its own.
pub(super) fn beside<R: 'static>(pool: &BumpPool, f: impl FnOnce(BumpPool) -> R + 'static) -> JoinHandle<R> {
    let pool = pool.clone();
    thread::spawn(move || f(pool))
}

/// Drops what holds a memory on a thread of its own, which reads the memory before: after `writes`
/// writes.
pub(super) fn read_elsewhere(
    held: impl Sized + 'static,
    shadow: &Arc<Shadow>,
    writes: u32,
) -> JoinHandle<()> {
    let shadow = Arc::clone(shadow);
    thread::spawn(move || {
        assert_eq!(shadow.read(), writes);
        drop(held);
    })
}

/// Uses a buffer's memory and drops the buffer.
pub(super) fn use_up(buf: Buffer) {
    touch(&buf);
    drop(buf);
}

/// Uses the pool once, alone in a shard, on a thread that ends then.
fn pass_by(pool: &BumpPool) {
    let buf = acquire(pool);
    scribble(&buf);
    drop(buf);
    local::end_of_thread();
}

/// What the releasing thread did with the bytes happens before what their next owner does.
#[test]
fn loom_reuse_after_release_on_another_thread() {
    loom::model(|| {
        let pool = pool(false);
        let shadow = Shadow::shared();
        let buf = acquire(&pool);
        let address = buf.as_ptr();
        shadow.write();
        let consumer = read_elsewhere(buf, &shadow, 1);
        thread::yield_now();
        drop(acquire_again(&pool, address, &shadow));
        consumer.join().unwrap();
    });
}

/// One buffer of a shard goes back here and one elsewhere: the shard starts again after both.
#[test]
fn loom_restart_after_releases_here_and_elsewhere() {
    loom::model(|| {
        let pool = pool(true);
        let shadow = Shadow::shared();
        let (sent, kept) = (acquire(&pool), acquire(&pool));
        let address = sent.as_ptr();
        let consumer = read_elsewhere(sent, &shadow, 0);
        thread::yield_now();
        drop(kept);
        drop(acquire_again(&pool, address, &shadow));
        consumer.join().unwrap();
    });
}

/// Parts and views of one buffer, dropped on two threads: both are done before the memory is
/// written again.
#[test]
fn loom_reuse_after_the_last_part() {
    loom::model(|| {
        let pool = pool(false);
        let shadow = Shadow::shared();
        let mut buf = acquire(&pool);
        let address = buf.as_ptr();
        shadow.write();
        let part = buf.split_off(4);
        let view: Frozen<BumpLease> = part.freeze();
        let consumer = read_elsewhere(view, &shadow, 1);
        thread::yield_now();
        drop(buf);
        drop(acquire_again(&pool, address, &shadow));
        consumer.join().unwrap();
    });
}

/// A view that is the only handle left may be written to: what the other part's owner did, it did
/// before.
#[test]
fn loom_thaw_after_the_other_part_is_gone() {
    loom::model(|| {
        let pool = pool(false);
        let shadow = Shadow::shared();
        let mut buf = acquire(&pool);
        let part = buf.split_off(4);
        let reader = read_elsewhere(part, &shadow, 0);
        thread::yield_now();
        if let Ok(buf) = buf.freeze().try_into_mut() {
            shadow.write();
            drop(buf);
        }
        reader.join().unwrap();
    });
}

/// Three parts, two of them dropped at once elsewhere: exactly one handle releases.
#[test]
fn loom_one_of_the_parts_is_last() {
    loom::model(|| {
        let pool = pool(false);
        let mut buf = acquire(&pool);
        let parts = [buf.split_off(6), buf.split_off(3)];
        let threads: Vec<_> = parts.into_iter().map(|part| thread::spawn(move || drop(part))).collect();
        drop(buf);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(pool.stats().in_use, 0);
    });
}

/// A thread ends, and with it its cache, while its buffer is dropped elsewhere: the shard comes
/// back once, after both.
#[test]
fn loom_end_of_a_thread_against_release() {
    loom::model(|| {
        let pool = pool(false);
        let shadow = Shadow::shared();
        let slot = Arc::new(loom::sync::Mutex::new(None));
        let ending = {
            let (pool, slot) = (pool.clone(), Arc::clone(&slot));
            thread::spawn(move || {
                let buf = acquire(&pool);
                *slot.lock().unwrap() = Some(buf);
                local::end_of_thread();
            })
        };
        let mut seen = None;
        for _ in 0..2 {
            thread::yield_now();
            if let Some(buf) = slot.lock().unwrap().take() {
                seen = Some(buf.as_ptr());
                let consumer = {
                    let shadow = Arc::clone(&shadow);
                    thread::spawn(move || {
                        shadow.read();
                        use_up(buf);
                    })
                };
                thread::yield_now();
                drop(acquire_again(&pool, buf_address(seen), &shadow));
                consumer.join().unwrap();
                break;
            }
        }
        ending.join().unwrap();
        drop(slot.lock().unwrap().take());
        if let Some(address) = seen {
            drop(acquire_again(&pool, address, &shadow));
        }
        assert_eq!(pool.stats().in_use, 0);
    });
}

fn buf_address(seen: Option<*const u8>) -> *const u8 {
    seen.unwrap_or(core::ptr::null())
}

/// The pool ends on the thread that has the cache, while a buffer is dropped elsewhere: who is last
/// frees.
#[test]
fn loom_end_of_a_pool_against_release() {
    loom::model(|| {
        let pool = pool(true);
        let (sent, kept) = (acquire(&pool), acquire(&pool));
        let consumer = thread::spawn(move || use_up(sent));
        thread::yield_now();
        touch(&kept);
        drop(pool);
        drop(kept);
        consumer.join().unwrap();
        assert_eq!(freed(), 1, "freed once");
    });
}

/// The same after a release here: the buffer that is out elsewhere is the last, and frees after
/// both.
#[test]
fn loom_end_of_a_pool_after_a_release() {
    loom::model(|| {
        let pool = pool(true);
        let (sent, kept) = (acquire(&pool), acquire(&pool));
        let consumer = thread::spawn(move || use_up(sent));
        use_up(kept);
        thread::yield_now();
        drop(pool);
        consumer.join().unwrap();
        assert_eq!(freed(), 1, "freed once");
    });
}

/// The pool ends while the owner of a shard releases the last buffer of it, after one that was
/// released elsewhere: its count is then the owner's.
#[test]
fn loom_end_of_a_pool_against_a_count_that_moves() {
    loom::model(|| {
        let pool = pool(true);
        let owner = beside(&pool, |pool| {
            let (sent, kept) = (acquire(&pool), acquire(&pool));
            drop(pool);
            thread::spawn(move || drop(sent)).join().unwrap();
            use_up(kept);
            local::end_of_thread();
        });
        thread::yield_now();
        drop(pool);
        owner.join().unwrap();
        orphan::sweep();
        assert_eq!(freed(), 1, "freed once");
    });
}

/// The pool ends on a thread that owns nothing, while another such thread releases the only buffer:
/// it is counted once, so no look is needed.
#[test]
fn loom_end_of_a_pool_against_a_release_elsewhere() {
    loom::model(|| {
        let pool = pool(false);
        let sent = acquire(&pool);
        let consumer = thread::spawn(move || use_up(sent));
        let ending = thread::spawn(move || drop(pool));
        consumer.join().unwrap();
        ending.join().unwrap();
        assert_eq!(orphan::pending(), 0);
        assert_eq!(freed(), 1, "freed once");
        local::end_of_thread();
    });
}

/// Runs a model with at most `preemptions` preemptions: with three, those of trims take minutes.
pub(super) fn briefly(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound =
        Some(builder.preemption_bound.map_or(preemptions, |bound| bound.min(preemptions)));
    builder.check(model);
}

/// A trim frees the memory of shards while another thread trims as well, or looks for a shard.
#[test]
fn loom_trim_against_others() {
    fn against(what: fn(&BumpPool)) {
        briefly(1, move || {
            let pool = pool(false);
            drop((acquire(&pool), acquire(&pool)));
            local::end_of_thread();
            let other = beside(&pool, move |pool| what(&pool));
            pool.trim();
            other.join().unwrap();
            pool.trim();
            assert_eq!(pool.stats().reserved_bytes, 0, "memory that no trim finds");
        });
    }
    against(BumpPool::trim);
    against(pass_by);
}

/// A header that is new to one thread is looked at by another.
#[test]
fn loom_look_against_a_new_shard() {
    briefly(2, || {
        let pool = pool(false);
        let looking = beside(&pool, |pool| {
            _ = pool.stats();
            pool.trim();
        });
        drop(acquire(&pool));
        looking.join().unwrap();
    });
}

/// The pool ends on one thread while the thread that has the cache drops its buffer of `bytes`, and
/// then ends.
fn end_of_a_pool_against_its_owner(pool: BumpPool, bytes: usize) {
    let owner = beside(&pool, move |pool| {
        let buf = pool.acquire(bytes).expect("the allocator has room");
        drop(pool);
        use_up(buf);
        local::end_of_thread();
    });
    thread::yield_now();
    drop(pool);
    owner.join().unwrap();
    orphan::sweep();
    assert_eq!(orphan::pending(), 0);
    assert_eq!(freed(), 1, "freed once");
}

#[test]
fn loom_end_of_a_pool_against_its_owner() {
    loom::model(|| end_of_a_pool_against_its_owner(pool(false), ONE));
}

/// The same with a shard that the owner carves no more, so that its last release has to use the
/// cache.
#[test]
fn loom_end_of_a_pool_against_a_listed_shard() {
    loom::model(|| {
        let pool = pool(false);
        let owner = beside(&pool, |pool| {
            let first = acquire(&pool);
            let second = acquire(&pool);
            drop(pool);
            touch(&first);
            touch(&second);
            drop((first, second));
            local::end_of_thread();
        });
        thread::yield_now();
        drop(pool);
        owner.join().unwrap();
        orphan::sweep();
        assert_eq!(orphan::pending(), 0);
        assert_eq!(freed(), 2, "each freed once");
    });
}

/// Two buffers of a pool that is gone and whose owner lives: the last of them leaves nothing to a
/// later sweep.
#[test]
fn loom_late_releases_free_the_memory_themselves() {
    loom::model(|| {
        let pool = pool(true);
        let buffers = {
            let pool = pool.clone();
            // Its thread is gone by then, so both are exact; those of this one are orphaned by no
            // one.
            let owner = thread::spawn(move || {
                let buffers = [acquire(&pool), acquire(&pool)];
                local::end_of_thread();
                buffers
            });
            owner.join().unwrap()
        };
        drop(pool);
        let threads = buffers.map(|buf| thread::spawn(move || use_up(buf)));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(freed(), 1, "freed once");
    });
}

/// Two threads count the owner's releases while it releases: each release once, and never one less
/// than none.
#[test]
fn loom_releases_are_counted_once() {
    loom::model(|| {
        let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let count = |counts: Arc<(AtomicUsize, _)>| newly_freed(&counts.0, &counts.1);
        let threads = [counts.clone(), counts.clone()].map(|counts| thread::spawn(move || count(counts)));
        // ORDER: Release, as in `release_local`.
        counts.0.store(1, Ordering::Release);
        let mut counted = threads.map(|thread| thread.join().unwrap()).to_vec();
        counted.push(count(counts));
        assert!(counted.iter().all(|&of_one| of_one <= 1), "{counted:?}");
        assert_eq!(counted.iter().sum::<usize>(), 1, "{counted:?}");
    });
}

/// Two threads take and give shards of one pool.
#[test]
fn loom_idle_shards_go_round() {
    loom::model(|| {
        let pool = pool(false);
        let threads = [(), ()].map(|()| beside(&pool, |pool| pass_by(&pool)));
        for thread in threads {
            thread.join().unwrap();
        }
        let stats = pool.stats();
        assert!(stats.in_use == 0 && stats.reserved_bytes <= 2 * SPAN);
    });
}

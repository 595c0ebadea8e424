//! Larger models than loom's, in schedules that shuttle draws: three or four threads, each with
//! several operations. All accesses are in one order here, so what orders are for is loom's to see.
//!
//! With the known defects `nolock` and `uncounted` some of these models fail, which is noted at
//! each.

use alloc::sync::Arc;
use alloc::vec::Vec;

use bufcore::{Buf, Frozen};
use bufkit::orphan;
use shuttle::sync::Mutex;
use shuttle::thread;
use testkit::model::{Claim, Shadow};
use testkit::models::{choice, explore};

use crate::shard::HEADER_BYTES;
use crate::{BumpLease, BumpPool};

/// Two of so many share a shard, which has a page.
const BYTES: usize = 2048 - HEADER_BYTES;
const ITERATIONS: usize = 3000;

enum Handle {
    Buf(Buf<BumpLease>),
    View(Frozen<BumpLease>),
}

/// A handle of memory whose address is noted. The claim is in front: it ends before the memory goes
/// back.
struct Noted {
    claim: Arc<Claim>,
    handle: Handle,
}

/// A pool whose shards hold two buffers.
fn pool() -> BumpPool {
    let bytes = 2 * BYTES + HEADER_BYTES;
    BumpPool::builder().shard_size(bytes).max_idle_bytes(8 * 4096).build().expect("a small pool")
}

/// Some operations of one thread.
fn life(pool: &BumpPool, addresses: &Arc<Shadow>, shelf: &Mutex<Vec<Noted>>) {
    let mut held: Vec<Noted> = Vec::new();
    for _ in 0..6 {
        match choice(10) {
            0..4 => {
                let mut buf = pool.acquire(BYTES).expect("the allocator has room");
                let claim = Arc::new(addresses.claim(buf.as_ptr(), buf.capacity()));
                buf.commit(BYTES);
                held.push(Noted { claim, handle: Handle::Buf(buf) });
            }
            4 => {
                if let Some(Noted { claim, handle: Handle::Buf(mut buf) }) = held.pop() {
                    if buf.capacity() > 1 {
                        let part = buf.split_off(buf.capacity() / 2);
                        held.push(Noted { claim: Arc::clone(&claim), handle: Handle::Buf(part) });
                    }
                    held.push(Noted { claim, handle: Handle::View(buf.freeze()) });
                }
            }
            5 => {
                if let Some(Noted { claim, handle: Handle::View(view) }) = held.pop() {
                    let other = Noted { claim: Arc::clone(&claim), handle: Handle::View(view.clone()) };
                    held.push(other);
                    let handle = view.try_into_mut().map_or_else(Handle::View, Handle::Buf);
                    held.push(Noted { claim, handle });
                }
            }
            6 => {
                let mut shelf = shelf.lock().expect("nobody panics with it");
                shelf.extend(held.pop());
                let other = if shelf.is_empty() { None } else { Some(shelf.swap_remove(0)) };
                drop(shelf);
                held.extend(other);
            }
            7 => match choice(4) {
                0..2 => pool.trim(),
                2 => pool.trim_idle(core::time::Duration::ZERO),
                // Larger than a shard.
                _ => {
                    let mut buf = pool.acquire(5 * BYTES + HEADER_BYTES).expect("the allocator has room");
                    let claim = Arc::new(addresses.claim(buf.as_ptr(), buf.capacity()));
                    buf.commit(BYTES);
                    held.push(Noted { claim, handle: Handle::Buf(buf) });
                }
            },
            _ => drop(held.pop()),
        }
    }
}

/// Threads use handles of one pool, hand parts and views on, and trim; then all was released.
/// Fails with `nolock` and `uncounted`.
#[test]
fn shuttle_shards_go_round() {
    explore(ITERATIONS, || {
        let pool = pool();
        let addresses = Shadow::new();
        let shelf: Arc<Mutex<Vec<Noted>>> = Arc::default();
        let start = || {
            let (pool, addresses, shelf) = (pool.clone(), Arc::clone(&addresses), Arc::clone(&shelf));
            thread::spawn(move || life(&pool, &addresses, &shelf))
        };
        let mut threads: Vec<_> = (0..3).map(|_| start()).collect();
        threads.swap_remove(choice(3)).join().expect("it is fine");
        threads.push(start());
        threads.into_iter().for_each(|thread| thread.join().expect("it is fine"));
        drop(shelf.lock().expect("nobody panics with it").drain(..));
        pool.trim();
        assert_eq!(pool.stats().reserved_bytes, 0, "memory that no trim finds");
        assert_eq!(addresses.live(), 0);
    });
}

/// Several pools on each thread: handles go while others are used, and the last of them on any
/// thread, with buffers out.
#[test]
fn shuttle_pools_end_beside_others() {
    explore(ITERATIONS, || {
        let addresses = Shadow::new();
        let shelf: Arc<Mutex<Vec<Noted>>> = Arc::default();
        let pools = [pool(), pool()];
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let mut pools = Vec::from(pools.clone());
                let (addresses, shelf) = (Arc::clone(&addresses), Arc::clone(&shelf));
                thread::spawn(move || {
                    while !pools.is_empty() {
                        let pool = pools.swap_remove(choice(pools.len()));
                        life(&pool, &addresses, &shelf);
                    }
                })
            })
            .collect();
        drop(pools);
        threads.into_iter().for_each(|thread| thread.join().expect("it is fine"));
        drop(shelf.lock().expect("nobody panics with it").drain(..));
        assert_eq!(addresses.live(), 0);
        orphan::sweep();
        assert_eq!(orphan::pending(), 0);
    });
}

//! The peers whose buffers borrow a pool that is leaked: one for all threads.

use core::ops::DerefMut;

use crossbeam_queue::ArrayQueue;
use opool::PoolAllocator;
use zeropool::{BufUninit, ZeroPool};

use super::Theirs;
use crate::harness::block::Block;
use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::{Plan, Settings, Unsupported};
use crate::harness::serve::Pool;

/// A pool of another crate's.
trait Shared: Sized + 'static {
    type Buf: Block;

    /// Builds it for what the workload will ask.
    fn build(plan: &Plan) -> Result<Self, Unsupported>;

    /// Takes a buffer of at least `bytes` bytes.
    fn take(&'static self, bytes: usize) -> Self::Buf;
}

/// A handle to a pool that is never dropped.
struct Leaked<P: 'static>(&'static P);

impl<P> Clone for Leaked<P> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<P: Shared> Pool for Leaked<P> {
    type Buf = P::Buf;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        Ok(Self(Box::leak(Box::new(P::build(plan)?))))
    }

    #[inline(always)]
    fn acquire(&mut self, bytes: usize) -> P::Buf {
        self.0.take(bytes)
    }
}

/// All of them.
pub(super) fn all() -> [Engine; 6] {
    let zeropool = whole::<ZeroPool>(
        "zeropool",
        "`ZeroPool` that keeps small buffers too, with caches of at least eight and as large as the burst: `alloc_uninit`, so \
         that nothing is zeroed. One pool for all threads",
    );
    let untuned = zeropool
        .without_settings("zeropool-default", "`ZeroPool::new()`: `alloc_uninit`; one pool for all threads");
    let opool = whole::<opool::Pool<Makes, Vec<u8>>>(
        "opool",
        "filled with as many vectors of the largest size as are out at once: `LocalPool` where one thread does all, `Pool` \
         where several do",
    );
    [
        zeropool,
        untuned,
        opool.whole::<Leaked<opool::LocalPool<Makes, Vec<u8>>>>(),
        whole::<Objects>(
            "object-pool",
            "`object_pool::Pool` filled with as many vectors of the largest size as are out at once, `pull`",
        ),
        whole::<byte_pool::BytePool>("byte-pool", "`BytePool<Vec<u8>>::alloc`, one pool for all threads"),
        whole::<Queue>(
            "vec-queue",
            "vectors of the largest size in an `ArrayQueue` of `crossbeam-queue`: a request pops one, or allocates; a drop \
             pushes it back",
        ),
    ]
}

fn whole<P: Shared<Buf: Send> + Sync>(name: &'static str, idiom: &'static str) -> Engine {
    Engine::new(name, Kind::Peer, idiom)
        .whole::<Leaked<P>>()
        .sends::<Leaked<P>>()
        .threads_share::<Leaked<P>>()
        .no_frames("pools whole objects; a frame would be a `Vec` of the largest size in it, which is what `vec` shows")
}

// SAFETY: the buffer has the length that was asked for, at one place, and is its holder's alone.
unsafe impl Block for Theirs<BufUninit<'static>> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.0.as_uninit_mut().as_mut_ptr().cast()
    }
}

impl Shared for ZeroPool {
    type Buf = Theirs<BufUninit<'static>>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        if plan.settings == Settings::Unset {
            return Ok(Self::new());
        }
        let pool = Self::new().min_buffer_size(0).tls_cache_size(plan.room.max(8));
        Ok(pool.max_buffers_per_class(plan.room.max(32)))
    }

    #[inline(always)]
    fn take(&'static self, bytes: usize) -> Self::Buf {
        Theirs(self.alloc_uninit(bytes))
    }
}

/// A vector of another crate's pool. Whoever makes one has found, or made, its capacity to be at least
/// what was asked for.
struct Vector<V>(V);

// SAFETY: the vector's capacity is large enough, as above; nobody grows or moves it.
unsafe impl<V: DerefMut<Target = Vec<u8>> + 'static> Block for Vector<V> {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}

impl Shared for byte_pool::BytePool {
    type Buf = Vector<byte_pool::Block<'static>>;

    fn build(_plan: &Plan) -> Result<Self, Unsupported> {
        Ok(Self::new())
    }

    #[inline(always)]
    fn take(&'static self, bytes: usize) -> Self::Buf {
        Vector(self.alloc(bytes))
    }
}

/// Makes vectors of one size.
struct Makes(usize);

impl PoolAllocator<Vec<u8>> for Makes {
    fn allocate(&self) -> Vec<u8> {
        Vec::with_capacity(self.0)
    }
}

impl Shared for opool::Pool<Makes, Vec<u8>> {
    type Buf = Vector<opool::RefGuard<'static, Makes, Vec<u8>>>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        plan.bytes_of_equals()?;
        Ok(Self::new_prefilled(plan.room, Makes(plan.largest)))
    }

    #[inline(always)]
    fn take(&'static self, _bytes: usize) -> Self::Buf {
        Vector(self.get())
    }
}

impl Shared for opool::LocalPool<Makes, Vec<u8>> {
    type Buf = Vector<opool::RefLocalGuard<'static, Makes, Vec<u8>>>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        plan.bytes_of_equals()?;
        Ok(Self::new_prefilled(plan.room, Makes(plan.largest)))
    }

    #[inline(always)]
    fn take(&'static self, _bytes: usize) -> Self::Buf {
        Vector(self.get())
    }
}

/// A stack under a lock.
struct Objects {
    pool: object_pool::Pool<Vec<u8>>,
    largest: usize,
}

impl Shared for Objects {
    type Buf = Vector<object_pool::Reusable<'static, Vec<u8>>>;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        plan.bytes_of_equals()?;
        let largest = plan.largest;
        Ok(Self { pool: object_pool::Pool::new(plan.room, || Vec::with_capacity(largest)), largest })
    }

    #[inline(always)]
    fn take(&'static self, _bytes: usize) -> Self::Buf {
        Vector(self.pool.pull(|| Vec::with_capacity(self.largest)))
    }
}

/// What one writes with a queue at hand.
struct Queue {
    free: ArrayQueue<Vec<u8>>,
    largest: usize,
}

/// A vector that goes back to the queue.
struct Queued {
    bytes: Vec<u8>,
    free: &'static ArrayQueue<Vec<u8>>,
}

// SAFETY: a vector with the plan's largest size as capacity, which nobody grows or moves.
unsafe impl Block for Queued {
    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }
}

impl Drop for Queued {
    #[inline(always)]
    fn drop(&mut self) {
        // One that finds no room is dropped; there is room for all that the plan has out.
        let _ = self.free.push(core::mem::take(&mut self.bytes));
    }
}

impl Shared for Queue {
    type Buf = Queued;

    fn build(plan: &Plan) -> Result<Self, Unsupported> {
        plan.bytes_of_equals()?;
        let free = ArrayQueue::new(plan.room);
        for _ in 0..plan.room {
            let _ = free.push(Vec::with_capacity(plan.largest));
        }
        Ok(Self { free, largest: plan.largest })
    }

    #[inline(always)]
    fn take(&'static self, _bytes: usize) -> Queued {
        let bytes = self.free.pop().unwrap_or_else(|| Vec::with_capacity(self.largest));
        Queued { bytes, free: &self.free }
    }
}

//! T23: a global allocator that acquires, releases, and drops pools and their last handles, in each
//! call of a program in turn. For a test binary of its own, whose allocator is a [`Reentrant`].

use std::cell::RefCell;
use std::thread;

use bufcore::{Buf, BufferPool};
use bufkit::orphan;

use crate::alloc::Reentrant;
use crate::pattern;

/// A strategy, for this trial.
#[derive(Debug)]
pub struct Reentry<P: BufferPool> {
    /// The allocator of the test binary.
    pub allocator: &'static Reentrant,
    /// A small pool.
    pub make: fn() -> P,
    /// Another handle of a pool, where there are such.
    pub handle: fn(&P) -> Option<P>,
    /// Sizes that between them use everything that allocates or frees.
    pub sizes: &'static [usize],
    /// One of them that makes the thread a cache, where pools have such.
    pub small: usize,
    /// What else there is to call: trims and the like.
    pub more: fn(&mut P),
}

/// What the allocator plays with: never borrowed while a pool is called.
struct World<P: BufferPool> {
    pools: Vec<P>,
    bufs: Vec<(Buf<P::Lease>, u64)>,
    stamp: u64,
}

/// What the allocator does in its one call.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Acquire,
    Release,
    DropPool,
    MakePool,
    DropAll,
}

const DEEDS: [Deed; 5] = [Deed::Acquire, Deed::Release, Deed::DropPool, Deed::MakePool, Deed::DropAll];

/// Takes a filled buffer from `pool`.
fn take<P: BufferPool>(pool: &mut P, bytes: usize, stamp: u64) -> Option<(Buf<P::Lease>, u64)> {
    Some((super::filled(pool, bytes, stamp).ok()?, stamp))
}

/// Looks at a buffer, and drops it.
fn release<L: bufcore::Lease>((buf, stamp): (Buf<L>, u64)) {
    pattern::check(&buf, stamp, 0);
    drop(buf);
}

impl<P: BufferPool + Send> Reentry<P> {
    fn deed(&self, world: &RefCell<World<P>>, deed: Deed) {
        let stamp = {
            let mut world = world.borrow_mut();
            world.stamp += 1;
            world.stamp
        };
        let next = || world.borrow_mut().bufs.pop();
        match deed {
            Deed::Acquire => {
                for &bytes in self.sizes {
                    let Some(mut pool) = world.borrow_mut().pools.pop() else { return };
                    let buf = take(&mut pool, bytes, stamp);
                    let mut world = world.borrow_mut();
                    world.pools.push(pool);
                    world.bufs.extend(buf);
                }
            }
            Deed::Release => {
                while let Some(buf) = next() {
                    release(buf);
                }
            }
            Deed::DropPool => {
                let pool = world.borrow_mut().pools.pop();
                drop(pool);
            }
            Deed::MakePool => {
                let mut pool = (self.make)();
                let buf = take(&mut pool, self.sizes[0], stamp);
                let mut world = world.borrow_mut();
                world.pools.push(pool);
                world.bufs.extend(buf);
            }
            Deed::DropAll => {
                // What is matched on is borrowed as long as the match.
                let next_pool = || world.borrow_mut().pools.pop();
                while let Some(pool) = next_pool() {
                    drop(pool);
                }
                while let Some(buf) = next() {
                    release(buf);
                }
            }
        }
    }

    /// Runs a program with a pool whose handle goes while buffers are out, and another handle, or
    /// another pool, that the allocator may drop. The newest buffer is released first, or last.
    fn program(&self, world: &RefCell<World<P>>, newest_first: bool) {
        let mut pool = (self.make)();
        let mut held = Vec::with_capacity(64);
        for round in 0..3 {
            for &bytes in self.sizes {
                held.extend(take(&mut pool, bytes, 1000 + round));
            }
            // The oldest go first, so that what is left behind becomes free.
            for _ in 0..self.sizes.len() / 2 {
                release(held.remove(0));
            }
            // What the allocator may release, and the handle that may be the last.
            let theirs = take(&mut pool, self.sizes[0], 2000 + round);
            let other = (self.handle)(&pool).unwrap_or_else(self.make);
            let mut world = world.borrow_mut();
            world.bufs.extend(theirs);
            world.pools.push(other);
        }
        (self.more)(&mut pool);
        for &bytes in self.sizes {
            held.extend(take(&mut pool, bytes, 3000));
        }
        drop(pool);
        if newest_first {
            held.reverse();
        }
        held.drain(..).for_each(release);
        orphan::sweep();
    }

    /// Uses pools that have ended elsewhere, and whose caches this thread finds among those of
    /// pools that the allocator drops.
    fn neighbours(&self, world: &RefCell<World<P>>) {
        const POOLS: usize = 24;
        let mut pools: Vec<_> = (0..POOLS).map(|_| (self.make)()).collect();
        for pool in &mut pools {
            drop(take(pool, self.small, 1));
        }
        // A third of them ends on another thread, which has to see to it before the rest is used.
        let ended: Vec<_> = pools.drain(..POOLS / 3).collect();
        thread::scope(|scope| {
            scope.spawn(move || drop(ended));
        });
        // The allocator's are looked at just before these.
        world.borrow_mut().pools.extend(pools.drain(..POOLS / 3));
        for _ in 0..POOLS / 3 {
            drop(take(&mut (self.make)(), self.small, 2));
        }
        drop(pools);
    }

    /// Tries each deed in each call of a program, and of the same with its buffers in the other
    /// order.
    ///
    /// # Panics
    ///
    /// When a buffer is not as it was, or none is to be had.
    pub fn everywhere(&self) {
        self.each("program", |world| self.program(world, false));
        self.each("backwards", |world| self.program(world, true));
        assert_eq!(orphan::pending(), 0, "memory that outlived its pool is kept");
    }

    /// Tries each deed in each call of a program that looks through the caches of many pools, of
    /// which some have ended elsewhere. The caller is a binary in which nothing else runs at the
    /// same time: numbers of pools decide which is beside which.
    pub fn beside_each_other(&self) {
        self.each("neighbours", |world| self.neighbours(world));
    }

    fn each(&self, what: &str, program: impl Fn(&RefCell<World<P>>)) {
        for deed in DEEDS {
            let calls = |before| {
                // With room, so that the deeds allocate nothing but what pools do.
                let (pools, bufs) = (Vec::with_capacity(64), Vec::with_capacity(256));
                let world = RefCell::new(World { pools, bufs, stamp: 0 });
                let calls = Reentrant::within(before, || self.deed(&world, deed), || program(&world));
                drop(world);
                orphan::sweep();
                calls
            };
            let calls = (0..).find(|&before| before >= calls(before)).expect("the program ends");
            println!("reentry: {what}, {deed:?} in each of {calls} calls");
        }
        self.allocator.check();
    }
}

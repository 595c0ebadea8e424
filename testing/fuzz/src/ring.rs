//! Operations on a ring: buffers, frames, buffers that grow, vectors of values whose drop panics; in memory of the heap's, or of a
//! source's.

use bufcore::BufferPool;
use bufring::{Builder, RingPool, RingVec};
use testkit::bytes::Bytes;
use testkit::hostile::{guarded, panic_on_purpose};
use testkit::identities;
use testkit::lockstep::Lockstep;
use testkit::model::Claim;

use crate::drive::{Drive, End};
use crate::sources::Memory;

/// Of a region, whose alignment is that of a cache line.
const LINE: usize = 64;

/// A value with memory of its own, which shows when it is dropped twice. Some panic when they are dropped.
struct Value {
    number: Box<u32>,
}

impl Value {
    fn new(number: u32) -> Self {
        Self { number: Box::new(number) }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        if *self.number % 32 == 31 {
            panic_on_purpose();
        }
    }
}

/// A vector, and its model.
struct Typed {
    // Declared first and so dropped first: the claim ends before the memory does.
    _claim: Claim,
    vec: RingVec<Value>,
    model: Vec<u32>,
}

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let builder = Builder::new()
        .capacity(bytes.pick([16, 200, 1024, 4096, 5000, 20_000, 70_000]))
        .buffers(1 + bytes.below(40))
        .alignment(1 << bytes.below(9));
    let flags = bytes.byte();
    let (wipes, end) = (flags & 1 != 0, End::of(flags >> 4));
    let builder = builder.wipe(wipes);
    let memory = (flags & 64 != 0).then(|| Memory::new(&mut bytes));
    if let Some(pool) = built(builder, memory.as_ref()) {
        program(pool, &mut bytes, wipes, end);
    }
    if let Some(memory) = memory {
        memory.check();
    }
}

/// A ring in memory of a source's, if there is one. `None` for settings that no ring can have.
fn built(builder: Builder, memory: Option<&Memory>) -> Option<RingPool> {
    let Some(memory) = memory else { return builder.build().ok() };
    let region = memory.region(builder.required_bytes().ok()?, LINE);
    memory.end();
    Some(builder.build_in(region).expect("the region is as it was asked for"))
}

fn program(pool: RingPool, bytes: &mut Bytes<'_>, wipes: bool, end: End) {
    let mut lockstep = Lockstep::over(pool, true);
    if wipes {
        lockstep.set_zeroed(|_| true);
    }
    let mut drive = Drive::new(lockstep);
    let mut vecs: Vec<Typed> = Vec::new();
    drive.run(bytes, |drive, bytes| special(drive, &mut vecs, bytes));
    if !end.pool_first {
        while let Some(last) = vecs.pop() {
            guarded(|| drop(last));
        }
        drive.lockstep.finish_frame();
        if drive.release(end) {
            let pool = drive.lockstep.pool();
            let stats = pool.stats();
            assert!(pool.is_idle() && stats.in_use == 0, "all was released: {stats:?}");
        }
    }
    // A source may panic when its memory comes back.
    guarded(|| drive.finish(end));
    end_all(vecs);
}

/// What only a ring does.
fn special(drive: &mut Drive<RingPool>, vecs: &mut Vec<Typed>, bytes: &mut Bytes<'_>) {
    match bytes.below(9) {
        0..=2 => drive.lockstep.finish_frame(),
        3 => {
            let capacity = bytes.size();
            if let Ok(vec) = drive.lockstep.pool().acquire_vec::<Value>(capacity) {
                let claim =
                    drive.lockstep.claim(vec.as_slice().as_ptr().cast(), capacity * size_of::<Value>());
                vecs.push(Typed { _claim: claim, vec, model: Vec::new() });
            }
        }
        4..=6 if !vecs.is_empty() => {
            let at = bytes.below(256) % vecs.len();
            if bytes.below(8) == 0 {
                drop(vecs.swap_remove(at));
            } else {
                change(&mut vecs[at], bytes);
            }
        }
        8 => {
            let lockstep = &mut drive.lockstep;
            let own = lockstep.own_bytes(|_| false);
            let (is_clear, stats) = (lockstep.is_clear(), lockstep.pool().stats());
            identities::check(&stats, own, is_clear);
            // No byte says which, so that inputs mean what they meant.
            match stats.in_use % 3 {
                0 | 1 => lockstep.pool().trim(),
                _ => {}
            }
        }
        _ => {
            let pool = drive.lockstep.pool();
            pool.max_capacity();
            let (idle, stats) = (pool.is_idle(), pool.stats());
            assert!(!idle || stats.in_use == 0, "{stats:?}");
        }
    }
}

/// Vectors that outlive their ring.
fn end_all(vecs: Vec<Typed>) {
    for typed in vecs {
        typed.check();
        guarded(|| drop(typed));
    }
}

impl Typed {
    #[track_caller]
    fn check(&self) {
        assert!(
            self.vec.iter().map(|value| *value.number).eq(self.model.iter().copied()),
            "a vector differs"
        );
    }
}

/// A change to a vector.
fn change(typed: &mut Typed, bytes: &mut Bytes<'_>) {
    let Typed { vec, model, .. } = typed;
    let (kind, at, number) = (bytes.below(10), bytes.below(256), u32::from(bytes.number()));
    let len = model.len();
    let changed = guarded(|| match kind {
        0..=3 => match vec.push(Value::new(number)) {
            Ok(()) => model.push(number),
            Err(refused) => {
                assert_eq!(len, vec.capacity());
                drop(refused);
            }
        },
        4 => assert_eq!(vec.pop().map(|value| *value.number), model.pop()),
        5 => match vec.try_insert(at % (len + 1), Value::new(number)) {
            Ok(()) => model.insert(at % (len + 1), number),
            Err(refused) => {
                assert_eq!(len, vec.capacity());
                drop(refused);
            }
        },
        6 if len > 0 => {
            let value = vec.remove(at % len);
            assert_eq!(*value.number, model.remove(at % len));
        }
        7 if len > 0 => {
            let value = vec.swap_remove(at % len);
            assert_eq!(*value.number, model.swap_remove(at % len));
        }
        8 => {
            vec.truncate(at);
            model.truncate(at);
        }
        9 => {
            vec.clear();
            model.clear();
        }
        _ => {}
    });
    if changed.is_none() {
        // A value's drop panicked: which of those that were to go are left is the vector's matter, none of the others may be gone.
        let left: Vec<_> = vec.iter().map(|value| *value.number).collect();
        let kept = if kind == 8 { at.min(len) } else { 0 };
        assert!(left.len() >= kept.min(model.len()) && left.len() <= len, "{} of {len} values", left.len());
        *model = left;
    }
    typed.check();
}

//! Operations on a slot pool over the heap, over nothing, and over a fallback that lies, panics and comes back in. It has memory of the
//! heap's, or of a source's.

use bufcore::{BufferPool, HeapPool, NoFallback, SplitLease};
use bufslot::{Builder, SlotPool};
use testkit::bytes::Bytes;
use testkit::hostile::{Baggage, Script, check_numbers, guarded};
use testkit::identities;
use testkit::lockstep::Lockstep;

use crate::drive::{Drive, End};
use crate::hostile::Others;
use crate::sources::Memory;

/// Of a region, whose alignment is that of a cache line.
const LINE: usize = 64;

/// What a program has besides its pool.
struct Setting<'a> {
    wipes: bool,
    end: End,
    rejects: bool,
    script: Option<&'a Script>,
}

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let capacity = bytes.pick([64, 300, 1024, 4096, 5000, 20_000, 70_000]);
    let slots = 1 + bytes.below(40);
    let alignment = 1 << bytes.below(9);
    let flags = bytes.byte();
    let wipes = flags & 1 != 0;
    let builder = Builder::new().capacity(capacity).slots(slots).alignment(alignment);
    let builder = builder.wipe(wipes).stagger(flags & 2 != 0);
    let memory = (flags & 64 != 0).then(|| Memory::new(&mut bytes));
    let bytes = &mut bytes;
    let mut setting = Setting { wipes, end: End::of(flags >> 4), rejects: true, script: None };
    match flags >> 2 & 3 {
        0 => {
            setting.rejects = false;
            let fallback = HeapPool::new().with_alignment(alignment).expect("settings are right");
            program(built(builder, fallback.with_wipe(wipes), memory.as_ref()), bytes, &setting);
        }
        1 => program(built(builder, NoFallback, memory.as_ref()), bytes, &setting),
        _ => {
            let (script, mut others) = (Script::default(), Others::default());
            setting.script = Some(&script);
            program(
                built(builder, script.fallback(move |things| others.work(things)), memory.as_ref()),
                bytes,
                &setting,
            );
            script.end();
        }
    }
    if let Some(memory) = memory {
        memory.check();
    }
}

/// A pool in memory of a source's, if there is one.
fn built<F: BufferPool>(builder: Builder, fallback: F, memory: Option<&Memory>) -> SlotPool<F> {
    let Some(memory) = memory else { return builder.build_with(fallback).expect("settings are right") };
    let region = memory.region(builder.required_bytes().expect("settings are right"), LINE);
    memory.end();
    let Ok(pool) = builder.build_in(region, fallback) else { panic!("the region is as it was asked for") };
    pool
}

fn program<F: BufferPool<Lease: SplitLease> + Send + 'static>(
    pool: SlotPool<F>,
    bytes: &mut Bytes<'_>,
    setting: &Setting<'_>,
) {
    let &Setting { wipes, end, rejects, script } = setting;
    let mut lockstep = Lockstep::over(pool, rejects);
    if wipes {
        lockstep.set_zeroed(|buf| !buf.lease().is_fallback());
    }
    if script.is_some() {
        lockstep.set_refusal(check_numbers);
    }
    let baggage = script.map_or_else(Baggage::default, |script| script.baggage.clone());
    let mut drive = Drive::new(lockstep);
    drive.run(bytes, |drive, bytes| match bytes.below(9) {
        0..=2 => {
            if let Some(script) = script {
                script.plan(bytes);
            }
        }
        3..=4 => {
            let thing = drive.lockstep.take(bytes.below(256));
            if let (Some(_), Some(thing)) = (script, thing) {
                baggage.put(move || thing.end());
            }
        }
        5..=6 => drive.lockstep.finish_frame(),
        7 => look(drive, bytes),
        _ => {
            sums(drive, script.is_some());
            // No byte says which, so that inputs mean what they meant.
            let pool = drive.lockstep.pool();
            match pool.stats().in_use % 3 {
                0 | 1 => pool.trim(),
                _ => {}
            }
        }
    });
    if let Some(script) = script {
        script.end();
    }
    if !end.pool_first {
        baggage.clear();
        drive.lockstep.finish_frame();
        if drive.release(end) {
            let pool = drive.lockstep.pool();
            let stats = pool.stats();
            assert!(pool.is_idle() && stats.in_use == 0, "all was released: {stats:?}");
        }
    }
    // A source may panic when its memory comes back.
    guarded(|| drive.finish(end));
    baggage.clear();
}

/// The counts add up, unless a fallback lies about its part.
fn sums<F: BufferPool<Lease: SplitLease>>(drive: &mut Drive<SlotPool<F>>, lies: bool) {
    if !lies {
        let lockstep = &mut drive.lockstep;
        let own = lockstep.own_bytes(|buf| buf.lease().is_fallback());
        let (is_clear, stats) = (lockstep.is_clear(), lockstep.pool().stats());
        identities::check(&stats, own, is_clear);
    }
}

/// Whatever can be asked of a pool.
fn look<F: BufferPool<Lease: SplitLease>>(drive: &mut Drive<SlotPool<F>>, bytes: &mut Bytes<'_>) {
    let pool = drive.lockstep.pool();
    let slot = bytes.below(256) % pool.slots();
    let (_, _, _) = (pool.is_taken(slot), pool.is_idle(), pool.mode());
    pool.max_capacity();
    let stats = pool.stats();
    assert!(stats.acquired < 10_000, "{stats:?}: what a pool has done itself it counts itself");
    assert!(pool.acquire(usize::MAX - slot).is_err());
}

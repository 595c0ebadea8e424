//! Operations on a slot pool over the heap, over nothing, and over a fallback that lies, panics and comes back in.

use std::mem;

use bufcore::{BufferPool, FrameBuffer, Reject, SplitLease};
use bufslot::{Builder, SlotPool};
use buftest::bytes::Bytes;
use buftest::lockstep::Lockstep;
use buftest::pattern;
use buftest::trials::fallbacks::check_numbers;

use crate::drive::{Drive, End};
use crate::hostile::Script;

/// Runs one program.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let builder = Builder::new()
        .capacity(bytes.pick([64, 300, 1024, 4096, 5000, 20_000, 70_000]))
        .slots(1 + bytes.below(40))
        .alignment(1 << bytes.below(9));
    let flags = bytes.byte();
    let wipes = flags & 1 != 0;
    let builder = builder.wipe(wipes).stagger(flags & 2 != 0);
    let end = End::of(flags >> 4);
    match flags >> 2 & 3 {
        0 => program(builder.build().expect("settings are right"), &mut bytes, (wipes, end), false, None),
        1 => program(
            builder.build_with(Reject).expect("settings are right"),
            &mut bytes,
            (wipes, end),
            true,
            None,
        ),
        _ => {
            let script = Script::default();
            let pool = builder.build_with(script.fallback()).expect("settings are right");
            program(pool, &mut bytes, (wipes, end), true, Some(&script));
            script.end();
        }
    }
}

fn program<F: BufferPool<Lease: SplitLease> + Send + 'static>(
    pool: SlotPool<F>,
    bytes: &mut Bytes<'_>,
    (wipes, end): (bool, End),
    rejects: bool,
    script: Option<&Script>,
) {
    let mut lockstep = Lockstep::over(pool, |pool| Some(pool), rejects);
    if wipes {
        lockstep.set_zeroed(|buf| !buf.lease().is_fallback());
    }
    if script.is_some() {
        lockstep.set_refusal(check_numbers);
    }
    let mut drive = Drive::new(lockstep);
    drive.run(bytes, |drive, bytes| match bytes.below(8) {
        0..=2 => {
            if let Some(script) = script {
                script.plan(bytes);
            }
        }
        3..=4 => {
            let thing = drive.lockstep.take(bytes.below(256));
            if let (Some(script), Some(thing)) = (script, thing) {
                script.baggage.put(move || thing.end());
            }
        }
        5..=6 => writer(drive, bytes),
        _ => look(drive, bytes),
    });
    if let Some(script) = script {
        script.end();
    }
    if !end.pool_first {
        let (pool, frame, _) = drive.lockstep.pool_and_frame();
        let detached = pool.detach().expect("an open frame can be detached");
        assert!(detached == frame[..], "the last frame differs");
        drop(detached);
        drive.lockstep.frame_is_closed();
        if drive.release(end) {
            let pool = drive.lockstep.pool();
            let stats = pool.stats();
            assert!(pool.is_idle() && stats.in_use == 0, "all is back: {stats:?}");
        }
    }
    drive.finish(end);
}

/// Writes through a writer, which is dropped, forgotten, or makes a buffer of the frame.
fn writer<F: BufferPool<Lease: SplitLease>>(drive: &mut Drive<SlotPool<F>>, bytes: &mut Bytes<'_>) {
    let steps = 1 + bytes.below(8);
    let end = bytes.below(4);
    let (pool, frame, gone) = drive.lockstep.pool_and_frame();
    let mut writer = pool.open_frame();
    for _ in 0..steps {
        let (kind, size, seed) = (bytes.below(4), bytes.size(), bytes.seed());
        let mut more = vec![0; size];
        pattern::fill(&mut more, seed, 0);
        let written = match kind {
            0 => writer.writable(size).map(|room| room.copy_from_slice(&more)),
            1 if size <= frame.len() => {
                writer.consume(size);
                frame.drain(..size);
                *gone += size;
                more.clear();
                Ok(())
            }
            _ => writer.extend_from_slice(&more),
        };
        match written {
            Ok(()) => frame.extend_from_slice(&more),
            Err(error) => assert!(size > 0, "{error}"),
        }
        assert!(writer.filled() == &frame[..], "the frame of a writer differs");
        assert!(writer.filled_mut() == &frame[..], "the frame of a writer differs");
    }
    match end {
        0 => {
            mem::forget(writer);
            // What was written since the pool last heard of it is lost.
            let left = pool.filled().len();
            assert!(pool.filled() == &frame[..left], "what is left of a frame differs");
            *gone += frame.len() - left;
            frame.truncate(left);
        }
        1 => {
            let buf = writer.detach().expect("an open frame can be detached");
            assert!(buf == frame[..], "a detached frame differs");
            let filled = mem::take(frame);
            drive.lockstep.frame_is_closed();
            let len = filled.len();
            drive.lockstep.admit(buf, len, filled);
        }
        _ => drop(writer),
    }
    if end != 1 {
        drive.lockstep.frame_has_place();
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

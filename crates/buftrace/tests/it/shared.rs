//! Recorded views as handles without a strategy: those that fit, and those that are put on the
//! heap.

use bufcore::{Frozen, Lease, SharedBytes};
use bufslot::SlotPool;
use buftrace::{Meta, Recorder, Recording};

fn views<L: Lease>(view: Frozen<L>, fits: bool) {
    let shared = SharedBytes::from(view);
    let at = shared.as_ptr();
    let parts = [shared.slice(1..), shared.clone()];
    drop(shared);
    let [rest, all] = parts;
    assert_eq!((&rest[..], &all[..], all.as_ptr()), (&b"bc"[..], &b"abc"[..], at));
    drop(rest);
    assert!(all.is_unique());
    assert_eq!(all.downcast::<L>().is_ok(), fits);
}

#[test]
fn a_recorded_buffer_is_released_once() {
    let recording = Recording::new();
    let mut once = Recorder::new(SlotPool::new(1024, 4).expect("settings are right"), &recording);
    let mut buf = bufcore::BufferPool::acquire(&mut once, 3).expect("room");
    buf.extend_from_slice(b"abc").expect("room");
    views(buf.freeze(), true);
    let mut thrice = Recorder::new(Recorder::new(once, &recording), &recording);
    let mut buf = bufcore::BufferPool::acquire(&mut thrice, 3).expect("room");
    buf.extend_from_slice(b"abc").expect("room");
    views(buf.freeze(), false);
    let trace = recording.finish(Meta::new("handles"));
    assert!(trace.out_at_end().is_empty(), "{trace:?}");
    assert_eq!(trace.events().len(), 8, "four acquires, four releases");
}

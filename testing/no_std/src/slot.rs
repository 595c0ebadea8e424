//! What only the slot pool has: its modes.

use bufcore::{AcquireError, NoFallback, Region};
use bufslot::{Builder, Mode, Writer};

use crate::Checked;

/// Takes whole buffers, to the last slot and past it, and checks what became of them.
pub(crate) fn modes(region: Region) -> Checked<Region> {
    let mut pool = ok!(Builder::new().slots(4).build_in(region, NoFallback));
    let quarter = pool.capacity() / 5;
    let first = ok!(pool.acquire(quarter));
    check!(pool.mode() == Mode::Back && pool.slot_of(&first) == Some(0) && pool.is_taken(0));
    let others = [ok!(pool.acquire(quarter)), ok!(pool.acquire(quarter)), ok!(pool.acquire(quarter))];
    // The slots are out, though not the memory.
    check!(matches!(pool.acquire(1), Err(AcquireError::Exhausted { requested: 1, .. })));
    check!(pool.mode() == Mode::Fallback);
    drop(others);
    check!(pool.is_taken(0) && !pool.is_taken(3));

    let mut writer = Writer::new(&mut pool);
    ok!(writer.extend_from_slice(b"headbody"));
    writer.discard_front(4);
    let frame = writer.finish();
    check!(&frame[..] == b"body");
    let Err(pool) = pool.into_region() else {
        fail!();
    };
    drop((first, frame));
    Ok(ok!(pool.into_region()))
}

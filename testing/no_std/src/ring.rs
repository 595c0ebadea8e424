//! What only the ring has: buffers that grow beside others, and typed ones.

use bufcore::{AcquireError, Region, Writer};
use bufring::Builder;

use crate::Checked;

/// Takes fixed, growing and typed buffers, until the ring is full.
pub(crate) fn growing_and_typed(region: Region) -> Checked<Region> {
    let mut ring = ok!(Builder::new().alignment(32).build_in(region));
    let capacity = ring.capacity();
    let mut first = ok!(ring.acquire(capacity / 8));
    ok!(first.extend_from_slice(b"first"));
    check!(first.as_ptr().addr() % 32 == 0);

    let mut writer = Writer::new(&mut ring);
    for _ in 0..capacity / 16 {
        ok!(writer.extend_from_slice(b"growing "));
    }
    let len = writer.filled().len();
    check!(writer.writable(capacity).is_err() && writer.filled().len() == len);
    let grown = writer.finish();
    check!(grown.len() == capacity / 16 * 8 && grown.chunks(8).all(|word| word == b"growing "));

    let mut words = ok!(ring.acquire_vec::<u64>(3));
    check!(
        words.push(7).is_ok()
            && words.try_insert(0, 6).is_ok()
            && words[..] == [6, 7]
            && words.remove(1) == 7
    );
    check!(matches!(ring.acquire(capacity), Err(AcquireError::Exhausted { .. })));
    drop((grown, words));
    check!(&first[..] == b"first");
    drop(first);
    check!(ring.acquire(capacity).is_ok());
    Ok(ok!(ring.into_region()))
}

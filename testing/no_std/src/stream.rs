//! The ring of bytes in its copying form: one piece of memory, no mappings.

use bufmirror::MirrorRing;

use crate::Checked;
use crate::pattern;

/// Goes many times around, in windows of all lengths; what is read is what was written.
///
/// For rings on the heap, too.
pub fn around(mut ring: MirrorRing) -> Checked {
    const TURNS: usize = 20;
    let capacity = ring.capacity();
    check!(!ring.is_mapped() && ring.is_empty() && ring.spare_capacity() == capacity);
    check!(ring.reserve(capacity + 1).is_err() && ring.reserve(usize::MAX).is_err());
    let (mut written, mut read) = (0, 0);
    let mut numbers = pattern::Numbers::new(5);
    while read < TURNS * capacity {
        let window = numbers.below(ring.spare_capacity() + 1);
        let bytes = ok!(ring.reserve(window));
        let start = written;
        bytes[..window].iter_mut().enumerate().for_each(|(at, byte)| *byte = pattern::byte(7, start + at));
        ring.commit(window);
        written += window;
        check!(ring.len() == written - read && pattern::is(ring.peek(), 7, read));
        let taken = numbers.below(ring.len() + 1);
        ring.consume(taken);
        read += taken;
    }
    check!(ring.reserve(ring.spare_capacity() + 1).is_err());
    ring.clear();
    check!(ring.is_empty() && ring.put(&[1, 2, 3]).is_ok());
    let mut three = [0; 3];
    check!(ring.get(&mut three).is_ok() && three == [1, 2, 3] && ring.get(&mut three).is_err());
    Ok(())
}

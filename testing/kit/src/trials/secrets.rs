//! T11: what one buffer held, no later one shows, unless the method's name says that recycled bytes
//! show.

use bufcore::BufferPool;
#[cfg(target_os = "linux")]
use bufcore::{Buf, SharedBytes, SplitLease, Writer};

use crate::Kit;
#[cfg(target_os = "linux")]
use crate::append::Append;

const OLD_BYTES: usize = 4096;
/// What old buffers are full of, and nothing else.
const SECRET: u8 = 238;

fn shows(bytes: &[u8]) -> bool {
    bytes.contains(&SECRET)
}

fn store_secret<P: BufferPool>(pool: &mut P, bytes: usize) {
    let mut buf = pool.acquire(bytes).expect("an ordinary request");
    buf.resize(bytes, SECRET).expect("asked for");
}

/// Checks that without wiping dereferencing, freezing, printing, zeroed buffers, and resized ones
/// show nothing.
pub fn filled_part_only<P: BufferPool>(kit: &Kit<P>) {
    let mut pool = (kit.make)();
    for bytes in (0..=OLD_BYTES).step_by(61).chain([OLD_BYTES]) {
        store_secret(&mut pool, OLD_BYTES);
        let mut buf = pool.acquire(bytes).expect("an ordinary request");
        assert!(buf.is_empty() && buf[..].is_empty() && buf.as_mut_slice().is_empty());
        assert!(!format!("{buf:?}").contains("238, 238"));
        buf.extend_from_slice(&vec![1; bytes / 2]).expect("there is room");
        assert!(!shows(&buf));
        buf.resize(bytes, 0).expect("there is room");
        assert!(!shows(&buf) && buf.len() == bytes);
        assert!(!shows(&buf.freeze()));
        store_secret(&mut pool, OLD_BYTES);
        let zeroed = pool.acquire_zeroed(bytes).expect("an ordinary request");
        assert!(zeroed.len() == bytes && zeroed.iter().all(|&byte| byte == 0), "{bytes} bytes are not zero");
        let view = zeroed.freeze();
        assert!(view.slice(bytes / 3..).iter().all(|&byte| byte == 0));
    }
}

/// Checks that the process's memory has no secret after all buffers of a wiping pool are dropped:
/// buffers that were split, joined, compacted, grown, frozen, thawed, shared and read, and frames
/// (T35). It runs in a process of its own.
#[cfg(target_os = "linux")]
pub fn t35_memory<P>(make: impl Fn() -> P)
where
    P: BufferPool<Lease: SplitLease + Send>,
{
    use std::io::{BufRead, Read};

    use crate::secret;

    type Handling<P> = fn(&mut P, Buf<<P as BufferPool>::Lease>);
    let handlings: [(&str, Handling<P>); 8] = [
        ("drop", |_, buf| drop(buf)),
        ("joins", |_, mut buf| {
            let mut back = buf.split_off(700);
            let rest = back.split_off(900);
            back.unsplit(rest).expect("the next part");
            buf.unsplit(back).expect("the next part");
        }),
        ("compact", |_, mut buf| {
            drop(buf.split_to(500));
            buf.consume(100);
            buf.compact();
        }),
        ("growth", |pool, mut buf| {
            for more in [2000, 6000, 17_000] {
                // A pool of this size may refuse it; then the buffer stays as it is.
                let _ = pool.grow(&mut buf, more);
            }
            buf.truncate(10);
            pool.shrink(&mut buf);
        }),
        ("growth after a cut", |pool, mut buf| {
            buf.truncate(8);
            buf.shrink_to(16);
            // What it had before is its own no longer.
            let _ = pool.grow(&mut buf, 20);
            buf.extend_from_slice(&[0; 8]).expect("there is room");
            let mut other = pool.acquire(2000).expect("an ordinary request");
            let mut windows = other.spare_mut().windows(8);
            assert!(!windows.any(secret::is_in), "secret bytes are in another's buffer");
        }),
        ("thaw", |pool, buf| {
            let mut view = buf.freeze();
            let kept = view.split_to(1000);
            let view = view.try_into_mut().expect_err("there is another view");
            let mut copy = pool.acquire(view.len()).expect("an ordinary request");
            copy.extend_from_slice(&view).expect("there is room");
            drop((kept, copy));
            drop(view.try_into_mut().expect("the only view"));
        }),
        ("shared bytes", |_, buf| {
            let mut shared = SharedBytes::from(buf.freeze());
            let (front, part) = (shared.split_to(1000), shared.slice(10..500));
            drop((front, shared.clone()));
            drop(part);
        }),
        ("reads", |pool, buf| {
            let mut view = buf.freeze();
            let mut copy = pool.acquire(2000).expect("an ordinary request");
            view.read_exact(&mut copy.spare_mut()[..2000]).expect("as many bytes");
            copy.commit(2000);
            let len = view.fill_buf().expect("never fails").len();
            BufRead::consume(&mut view, len);
        }),
    ];
    for (what, handling) in handlings {
        let mut pool = make();
        for _ in 0..5 {
            let mut buf = pool.acquire(3000).expect("an ordinary request");
            secret::write(&mut buf.spare_mut()[..3000]);
            buf.commit(3000);
            handling(&mut pool, buf);
        }
        assert_eq!(secret::bytes_in_memory(), 0, "secret bytes are left after {what}");
    }
    let mut writer = Writer::new(make());
    for _ in 0..5 {
        // Each of these moves the frame, if it has no room.
        for bytes in [100, 3000, 9000] {
            let Ok(room) = writer.append(bytes) else { break };
            secret::write(room);
        }
        let len = writer.filled().len();
        writer.discard_front(len / 3);
        writer.truncate(len / 3);
        drop(writer.finish());
    }
    assert_eq!(secret::bytes_in_memory(), 0, "secret bytes are left after frames");
}

//! Bytes that go over a socket and back.

use bufworks::SharedBytes;
use bufworks::any::AnyBuf;

use crate::system::{pattern, pools};

const BYTES: usize = 1000;
const ROUNDS: usize = 50;

/// Sends bytes of a pool of each strategy through a connection and back, from a handle without a
/// strategy. `write` sends all of the bytes, and `read` reads once behind the filled ones.
pub(crate) async fn echo<S>(
    streams: impl Fn() -> (S, S),
    write: impl AsyncFn(&mut S, SharedBytes),
    read: impl AsyncFn(&mut S, AnyBuf) -> (usize, AnyBuf),
) {
    let read_all = async |stream: &mut S, mut buf: AnyBuf| {
        let end = buf.len() + BYTES;
        while buf.len() < end {
            let filled = buf.len();
            let (n, part) = read(stream, buf).await;
            assert!(n > 0, "the end of the stream");
            assert_eq!(part.len(), filled + n);
            buf = part;
        }
        buf
    };
    for mut pool in pools() {
        let (mut here, mut there) = streams();
        for round in 0..ROUNDS {
            let sent = pattern(BYTES, round);
            let mut buf = pool.acquire(2 * BYTES).unwrap();
            buf.extend_from_slice(&sent).unwrap();
            write(&mut here, buf.into()).await;
            let mut buf = pool.acquire(2 * BYTES).unwrap();
            buf.extend_from_slice(b"head").unwrap();
            let mut buf = read_all(&mut there, buf).await;
            assert_eq!((&buf[..4], &buf[4..]), (&b"head"[..], &sent[..]), "{}", pool.strategy());
            buf.consume(4);
            write(&mut there, buf.into()).await;
            let buf = read_all(&mut here, pool.acquire(4 * BYTES).unwrap()).await;
            assert_eq!(buf, sent, "{}", pool.strategy());
        }
    }
}

//! Reads whose futures are dropped while the kernel may still write.
//!
//! The pool has one slot. As long as the runtime holds the buffer, an acquire is refused. As soon as
//! one is not, the kernel has to be done with the memory: a pattern in it has to stay.

use std::future::{Future, poll_fn};
use std::io::Write;
use std::net::TcpStream;
use std::pin::pin;
use std::task::Poll;
use std::thread;

use bufworks::slot::{Builder, SlotPool};
use bufworks::{Buf, BufferPool, NoFallback};

use crate::system::{pair, pattern};

/// What the rounds showed.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// The runtime held the buffer after its future was gone.
    pub(crate) held: usize,
    /// The buffer was back at once.
    pub(crate) at_once: usize,
}

type Pool = SlotPool<NoFallback>;
pub(crate) type Lease = <Pool as BufferPool>::Lease;

pub(crate) const BYTES: usize = 4096;
const ROUNDS: usize = 300;

pub(crate) fn one_slot() -> Pool {
    Builder::new().slots(1).capacity(BYTES).build_with(NoFallback).unwrap()
}

/// Starts a read and drops its future, in each round. `read` is one read of the socket whose other
/// end is `peer`; `tick` lets the runtime look at the kernel's answers.
pub(crate) async fn reads<R, T>(
    mut peer: TcpStream,
    mut read: impl FnMut(Buf<Lease>) -> R,
    mut tick: impl FnMut() -> T,
) -> Shown
where
    R: Future,
    T: Future<Output = ()>,
{
    let mut pool = one_slot();
    let mut shown = Shown::default();
    for round in 0..ROUNDS {
        let buf = pool.acquire(BYTES).unwrap();
        if round % 3 == 1 {
            peer.write_all(&pattern(100, round)).unwrap();
        }
        {
            let mut read = pin!(read(buf));
            poll_fn(|cx| Poll::Ready(read.as_mut().poll(cx).is_ready())).await;
            if round % 2 == 1 {
                tick().await;
            }
        }
        if round % 3 == 2 {
            peer.write_all(&pattern(200, round)).unwrap();
        }
        let mut buf = match pool.acquire(BYTES) {
            Ok(buf) => {
                shown.at_once += 1;
                buf
            }
            Err(_) => {
                shown.held += 1;
                returned(&mut pool, &mut peer, &mut tick).await
            }
        };
        let mine = pattern(BYTES, round);
        buf.extend_from_slice(&mine).unwrap();
        peer.write_all(&pattern(300, round + 1)).unwrap();
        tick().await;
        assert!(buf[..] == mine[..], "round {round}: the kernel wrote a buffer of another owner");
    }
    shown
}

/// Waits until the runtime has given the buffer back. A read that is not cancelled ends with bytes.
async fn returned<T: Future<Output = ()>>(
    pool: &mut Pool,
    peer: &mut TcpStream,
    tick: &mut impl FnMut() -> T,
) -> Buf<Lease> {
    peer.write_all(b"the end of the read").unwrap();
    for _ in 0..10_000 {
        tick().await;
        if let Ok(buf) = pool.acquire(BYTES) {
            return buf;
        }
    }
    panic!("the runtime never gave the buffer back");
}

/// Ends a runtime while a read of one of its tasks is in flight, in each round. `run` starts the
/// read on a runtime of its own and drops that runtime.
pub(crate) fn ends(mut run: impl FnMut(Buf<Lease>, TcpStream)) {
    let mut pool = one_slot();
    for round in 0..ROUNDS {
        let (mut peer, here) = pair();
        // Some of the bytes are there when the read starts.
        if round % 2 == 1 {
            peer.write_all(&pattern(1000, round)).unwrap();
        }
        run(pool.acquire(BYTES).unwrap(), here);
        let mut buf = pool.acquire(BYTES).expect("the runtime is gone");
        let mine = pattern(BYTES, round);
        buf.extend_from_slice(&mine).unwrap();
        // The other end may be closed.
        let _ = peer.write_all(&pattern(1000, round + 1));
        thread::yield_now();
        assert!(buf[..] == mine[..], "round {round}: the kernel wrote a buffer of another owner");
    }
}

//! Buffers from one pool on several threads, and a budget that is waited for.
//!
//! ```text
//! cargo run -p bufshard --example budget
//! ```

use core::time::Duration;
use std::thread;

use bufshard::ShardPool;
use bufshard::bufcore::Error;

fn main() -> Result<(), Error> {
    let pool = ShardPool::builder().max_bytes(64 << 20).build()?;

    // A buffer starts empty, with the room that was asked for.
    let mut buf = pool.acquire(1500)?;
    buf.extend_from_slice(b"written here")?;
    println!("one out:    {pool:?}");

    // It goes where it is needed, and back when it is dropped there.
    let reader = thread::spawn(move || println!("elsewhere:  {:?}", String::from_utf8_lossy(&buf)));
    reader.join().expect("printing does not panic");
    println!("none out:   {pool:?}");

    // Threads share a pool through clones; each has a cache of its own.
    let writers: Vec<_> = (0..4_u8)
        .map(|index| {
            let pool = pool.clone();
            thread::spawn(move || {
                let mut buf = pool.acquire(64 << 10)?;
                buf.resize(10, index)?;
                Ok::<_, Error>(buf)
            })
        })
        .collect();
    for (index, writer) in (0..).zip(writers) {
        let buf = writer.join().expect("acquiring does not panic")?;
        assert_eq!(&buf[..], [index; 10]);
    }

    // A request that does not fit the budget is refused, or waited for.
    let large = pool.acquire(40 << 20)?;
    println!("refused:    {}", pool.acquire(40 << 20).expect_err("over the budget"));
    let other = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        drop(large);
    });
    let waited = pool.acquire_timeout(40 << 20, Duration::from_secs(10))?;
    println!("waited for: {} bytes", waited.capacity());
    other.join().expect("dropping does not panic");
    Ok(())
}

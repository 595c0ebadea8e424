//! Buffers from one pool on several threads.
//!
//! ```text
//! cargo run -p bufbump --example threads
//! ```

use bufbump::BumpPool;
use bufbump::bufcore::Error;

fn main() -> Result<(), Error> {
    let pool = BumpPool::builder().shard_size(64 << 10).build()?;

    // A buffer starts empty, with at least the room that was asked for.
    let mut buf = pool.acquire(100)?;
    buf.extend_from_slice(b"written here")?;
    println!("one out:    {pool:?}");

    // It goes where it is needed, and back when it is dropped there.
    let reader = std::thread::spawn(move || println!("elsewhere:  {:?}", String::from_utf8_lossy(&buf)));
    reader.join().expect("printing does not panic");
    println!("none out:   {pool:?}");

    // Threads share a pool through clones; each carves from a shard of its own.
    let writers: Vec<_> = (0..4_u8)
        .map(|index| {
            let pool = pool.clone();
            std::thread::spawn(move || {
                let mut buf = pool.acquire(10)?;
                buf.resize(10, index)?;
                Ok::<_, Error>(buf)
            })
        })
        .collect();
    for (index, writer) in (0..).zip(writers) {
        let buf = writer.join().expect("acquiring does not panic")?;
        assert_eq!(&buf[..], [index; 10]);
    }

    // A request larger than a shard has a piece of memory of its own, which is kept for the next.
    let large = pool.acquire(1 << 20)?;
    assert!(large.lease().is_fallback());
    drop(large);

    pool.trim();
    println!("trimmed:    {pool:?}");
    Ok(())
}

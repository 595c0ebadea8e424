//! Messages of different sizes, one of which the pool has no room for.
//!
//! ```text
//! cargo run -p bufslot --example variable_sized_messages
//! ```

use bufslot::{Error, Mode, SlotBuf, SlotPool};

fn store(pool: &mut SlotPool, message: &str) -> Result<SlotBuf, Error> {
    let mut buf = pool.acquire(message.len())?;
    buf.extend_from_slice(message.as_bytes())?;
    println!("{:>3} bytes: {pool:?}", buf.len());
    Ok(buf)
}

fn main() -> Result<(), Error> {
    let mut pool = SlotPool::new(32, 8)?;

    let small = store(&mut pool, "Hello")?;
    let medium = store(&mut pool, "from a small pool")?;
    assert_eq!(pool.mode(), Mode::Back);

    // More than the ten bytes that are left, and than the pool has at all: the heap serves it.
    let text = "This one is longer than all of the memory that the pool was given.";
    let large = store(&mut pool, text)?;
    assert_eq!(pool.mode(), Mode::Fallback);
    assert!(large.lease().is_fallback() && !medium.lease().is_fallback());
    assert_eq!((&small[..], &large[..]), (&b"Hello"[..], text.as_bytes()));

    // Once all was released the pool starts at its front again.
    drop((small, medium, large));
    let last = store(&mut pool, "Hi")?;
    assert_eq!((pool.mode(), pool.slot_of(&last)), (Mode::Back, Some(0)));
    Ok(())
}

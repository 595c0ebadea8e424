//! One message through a pool: write it in place, look at it, take it out as a buffer of its own.
//!
//! ```text
//! cargo run -p bufslot --example basic
//! ```

use bufslot::SlotPool;

fn main() -> Result<(), bufcore::Error> {
    let mut pool = SlotPool::new(32, 8)?; // bytes, slots
    let message = b"Ciao, mundo!";

    // The pool lends room, and counts it as filled.
    pool.writable(message.len())?.copy_from_slice(message);
    println!("in the pool:  {:?}", String::from_utf8_lossy(pool.filled()));
    assert_eq!(pool.filled(), message);

    // From here on the bytes belong to `owned`, which may go to another thread; the pool is ready
    // for the next message.
    let owned = pool.detach()?;
    assert!(pool.filled().is_empty());
    println!("on its own:   {:?}", String::from_utf8_lossy(&owned));
    println!("the pool now: {pool:?}");
    assert_eq!(&owned[..], message);

    // Dropping it is all that is needed to give the memory back.
    drop(owned);
    println!("and then:     {pool:?}");
    assert!(pool.is_idle());
    Ok(())
}

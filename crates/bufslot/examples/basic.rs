//! One message through a pool: write it in place, look at it, take it out as a buffer of its own.
//!
//! ```text
//! cargo run -p bufslot --example basic
//! ```

use bufslot::{SlotPool, Writer};

fn main() -> Result<(), bufcore::Error> {
    let mut writer = Writer::new(SlotPool::new(32, 8)?); // bytes, slots
    let message = b"Ciao, mundo!";

    // The writer lends room, and counts it as filled when it is told to.
    writer.writable(message.len())?[..message.len()].copy_from_slice(message);
    writer.commit(message.len());
    println!("being filled: {:?}", String::from_utf8_lossy(writer.filled()));
    assert_eq!(writer.filled(), message);

    // From here on the bytes belong to `owned`, which may go to another thread; the writer is ready
    // for the next message.
    let owned = writer.finish();
    assert!(writer.filled().is_empty());
    println!("on its own:   {:?}", String::from_utf8_lossy(&owned));
    println!("the pool now: {:?}", writer.get_ref());
    assert_eq!(&owned[..], message);

    // Dropping it is all that is needed to give the memory back.
    drop(owned);
    println!("and then:     {:?}", writer.get_ref());
    assert!(writer.get_ref().is_idle());
    Ok(())
}

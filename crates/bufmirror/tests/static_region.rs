//! A ring over static memory, with no feature at all: no allocator, no operating system.
//!
//! ```text
//! cargo test -p bufmirror --no-default-features --test static_region
//! ```

use bufmirror::bufcore::{ByteSink, ByteSource};
use bufmirror::{Builder, ConfigError, StaticChannel};

/// Memory that is lent once.
fn memory<const BYTES: usize>() -> &'static mut [u8] {
    Box::leak(Box::new([0xEE; BYTES]))
}

#[test]
fn a_ring_without_features() {
    let mut ring = Builder::new().build_static(memory::<64>()).unwrap();
    assert_eq!((ring.capacity(), ring.is_mapped()), (32, false));
    for round in 0..100u8 {
        ByteSink::reserve(&mut ring, 7).unwrap().fill(round);
        ByteSink::commit(&mut ring, 7);
        // One byte stays until the next round, so that the ring goes round.
        let left = ring.len() - 7;
        assert!(ByteSource::peek(&mut ring)[left..].iter().all(|&byte| byte == round));
        ByteSource::consume(&mut ring, left + 6);
    }
    assert_eq!(
        Builder::new().build_static(memory::<1>()).unwrap_err(),
        ConfigError::RegionTooSmall { required: 2, available: 1 }
    );
}

#[test]
fn a_pipe_without_features() {
    let channel: &'static mut StaticChannel<64> = Box::leak(Box::new(StaticChannel::new()));
    let (mut producer, mut consumer) = channel.ends();
    for round in 0..100u8 {
        producer.put(&[round; 7]).unwrap();
        let left = consumer.len() - 7;
        assert!(consumer.peek()[left..].iter().all(|&byte| byte == round));
        consumer.consume(left + 6);
    }
}

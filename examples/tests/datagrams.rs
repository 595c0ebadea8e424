//! Batches of datagrams, split without a copy and by copying: every byte is compared.

use bufring::RingPool;
use bufshard::ShardPool;
use bufslot::SlotPool;
use bufworks_examples::datagrams::{Copies, Endpoint, Split, Views, run};

#[test]
fn every_byte_arrives() {
    for size in [100, 1200, 8000] {
        let pools = Views(ShardPool::new().unwrap());
        let views = run(pools, 50, size).unwrap();
        let copies = run(Copies::default(), 50, size).unwrap();
        assert_eq!(views.datagrams, copies.datagrams);
        run(Views(SlotPool::new(4 << 20, 512).unwrap()), 50, size).unwrap();
        run(Views(RingPool::new(32 << 20).unwrap()), 50, size).unwrap();
    }
}

/// The views of a batch are in its one buffer, in a row.
#[test]
fn a_batch_is_one_buffer() {
    let (sender, receiver) = (Endpoint::loopback().unwrap(), Endpoint::loopback().unwrap());
    let most = sender.most_at_once().min(10);
    sender.send(receiver.address().unwrap(), &vec![7; most * 500], 500).unwrap();
    let mut pool = Views(ShardPool::new().unwrap());
    let mut datagrams = Vec::new();
    while datagrams.len() < most {
        let before = datagrams.len();
        let count = pool.receive(&receiver, |datagram| datagrams.push(datagram)).unwrap();
        for pair in datagrams[before..before + count].windows(2) {
            assert_eq!(pair[0].as_ptr_range().end, pair[1].as_ptr(), "a copy");
        }
    }
    assert!(datagrams.iter().all(|datagram| datagram[..] == [7; 500]));
}

//! Buffers that one thread acquires and another releases, ten million of them: memory stays
//! bounded.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use bufshard::ShardPool;
use bufshard::bufcore::Buf;
use testkit::process::{alone, resident_bytes, steady_allocator};

const HANDOFFS: u64 = if cfg!(debug_assertions) { 50_000 } else { 10_000_000 };
/// On a busy machine there are fewer: each side yields for milliseconds.
const LONG: Duration = Duration::from_secs(120);
/// Bytes of each, and how many are on their way at most.
const BYTES: usize = 64 << 10;
const UNDER_WAY: usize = 64;
const WORKING_SET: usize = BYTES * UNDER_WAY;
const PAGE_BYTES: usize = 4096;

fn stamp<L: bufshard::bufcore::Lease>(buf: &mut Buf<L>, number: u64) {
    buf.extend_from_slice(&number.to_le_bytes()).expect("asked for");
    // One byte of a page each time, so that in the end all are resident.
    buf.spare_mut()[number as usize % (BYTES / PAGE_BYTES) * PAGE_BYTES] = 1;
}

/// Peak resident memory, over what there was before, is at most twice the working set.
#[test]
fn t12_ten_million() {
    alone(module_path!(), "t12_ten_million", Duration::from_secs(600), || {
        steady_allocator();
        let pool = ShardPool::new().expect("settings are right");
        let (mut producer, mut consumer) = rtrb::RingBuffer::<Buf<_>>::new(UNDER_WAY);
        let (mut peak_resident, mut peak_reserved) = (0, 0);
        let before = resident_bytes();
        let started = Instant::now();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut expected = 0_u64;
                loop {
                    let is_over = consumer.is_abandoned();
                    let Ok(buf) = consumer.pop() else {
                        if is_over {
                            break;
                        }
                        // On one processor, or where the other side has less to do, it has to get
                        // its turn.
                        thread::yield_now();
                        continue;
                    };
                    assert_eq!(buf[..8], expected.to_le_bytes());
                    drop(buf);
                    expected += 1;
                }
            });
            let is_long = |number: &u64| number.is_multiple_of(1000) && started.elapsed() > LONG;
            for number in (0..HANDOFFS).take_while(|number| !is_long(number)) {
                let mut buf = pool.acquire(BYTES).expect("room");
                stamp(&mut buf, number);
                while let Err(rtrb::PushError::Full(back)) = producer.push(buf) {
                    buf = back;
                    hint::spin_loop();
                    thread::yield_now();
                }
                if number % 1000 == 0 {
                    peak_resident = peak_resident.max(resident_bytes().saturating_sub(before));
                    peak_reserved = peak_reserved.max(pool.stats().reserved_bytes);
                }
            }
            drop(producer);
        });
        println!(
            "up to {HANDOFFS} handoffs: {peak_resident} bytes resident, {peak_reserved} reserved, {WORKING_SET} under way at most"
        );
        assert!(peak_reserved >= BYTES, "something was under way");
        assert!(peak_reserved <= 2 * WORKING_SET, "{peak_reserved} bytes reserved");
        assert!(peak_resident <= 2 * WORKING_SET, "{peak_resident} bytes resident");
    });
}

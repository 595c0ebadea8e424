//! No memory is handed out twice while the kernel writes it.

use std::os::unix::fs::FileExt;

use bufuring::Descriptor;

use crate::{PAGE, Page, arena, drivers, file, page, pool_in};

/// The number of reads: a million with `cargo xtask test --long`.
const READS: usize = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };
const PAGES: usize = 64;
const SLOTS: usize = 24;
const DEPTH: usize = 8;

/// What the file has in page `at`, and what this program writes to its own page `at`.
fn fill(page: &mut [u8], at: u64, salt: u64) {
    for (word, bytes) in page.chunks_exact_mut(8).enumerate() {
        bytes.copy_from_slice(&word_of(at, word as u64, salt).to_le_bytes());
    }
}

fn word_of(at: u64, word: u64, salt: u64) -> u64 {
    (at << 32 | word).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt
}

/// Whether the page has what it should, at some words that differ from call to call.
fn is_right(page: &[u8], at: u64, salt: u64, random: &mut fastrand::Rng) -> bool {
    let words = page.chunks_exact(8);
    let all = random.u8(..) == 0;
    let step = if all { 1 } else { 61 };
    words
        .enumerate()
        .skip(random.usize(..8))
        .step_by(step)
        .all(|(word, bytes)| bytes == word_of(at, word as u64, salt).to_le_bytes())
}

#[test]
fn reads_in_flight_share_no_byte_with_any_other_buffer() {
    const OURS: u64 = 0x5555_0000_AAAA_1111;
    for flags in [0, libc::O_DIRECT] {
        let arena = arena();
        let mut pool = pool_in(&arena, SLOTS);
        let file = file("patterns", flags);
        let mut bytes = page(&mut pool);
        for at in 0..PAGES as u64 {
            bytes.clear();
            bytes.resize(PAGE, 0).expect("a page is long enough");
            fill(&mut bytes, at, 0);
            file.write_all_at(&bytes, at * PAGE as u64).expect("the disk has room");
        }
        drop(bytes);
        let file = Descriptor::new(file);
        let mut random = fastrand::Rng::with_seed(flags as u64);
        for driver in drivers(&arena) {
            let mut reads = std::collections::VecDeque::new();
            let mut held: Vec<(Page, u64)> = Vec::new();
            for number in 0..READS as u64 / 6 {
                if reads.len() == DEPTH {
                    let (at, mut read) = reads.pop_front().expect("they are there");
                    if random.u8(..) < 8 {
                        // Its page is free once the kernel is done with it.
                        drop(read);
                    } else {
                        let done = driver.wait(&mut read).expect("the kernel answers");
                        let buf = done.into_result().expect("it is there");
                        assert!(is_right(&buf, at, 0, &mut random), "read {number} of page {at}");
                    }
                }
                while pool.acquire(PAGE).is_err() {
                    if held.is_empty() {
                        driver.wait_any().expect("the kernel answers");
                    } else {
                        drop(held.swap_remove(random.usize(..held.len())));
                    }
                }
                if random.u8(..) < 64 && held.len() < SLOTS - DEPTH - 4 {
                    let mut own = page(&mut pool);
                    own.resize(PAGE, 0).expect("a page is long enough");
                    fill(&mut own, number, OURS);
                    held.push((own, number));
                    continue;
                }
                if let Some((own, number)) = held.first() {
                    assert!(is_right(own, *number, OURS, &mut random), "the program's own page {number}");
                }
                let at = random.u64(..PAGES as u64);
                reads.push_back((at, driver.read_at(&file, page(&mut pool), PAGE, at * PAGE as u64)));
            }
            // In flight to the end.
            drop(driver);
            for (own, number) in held {
                assert!(is_right(&own, number, OURS, &mut random));
            }
        }
    }
}

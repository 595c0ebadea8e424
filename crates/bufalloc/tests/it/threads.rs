//! Threads that free each other's blocks.

use std::sync::Mutex;

use fastrand::Rng;

use super::blocks::traffic;

const THREADS: u64 = if cfg!(miri) { 2 } else { 8 };
const STEPS: usize = if cfg!(miri) { 20 } else { 1500 };

#[test]
fn threads_free_blocks_of_others() {
    let shared = Mutex::new(Vec::<Vec<u64>>::new());
    std::thread::scope(|scope| {
        for seed in 0..THREADS {
            let shared = &shared;
            scope.spawn(move || {
                let mut rng = Rng::with_seed(seed);
                for _ in 0..STEPS {
                    let mut block = vec![seed; rng.usize(4 << 10..128 << 10)];
                    block.resize(rng.usize(1..128 << 10), seed);
                    block.shrink_to_fit();
                    let mut shared = shared.lock().unwrap();
                    shared.push(block);
                    let other = if shared.len() > 32 { rng.usize(..32) } else { continue };
                    let other = shared.swap_remove(other);
                    drop(shared);
                    assert!(other.iter().all(|word| *word == other[0]), "another wrote to it");
                }
            });
        }
    });
}

#[test]
fn threads_have_models() {
    std::thread::scope(|scope| {
        for seed in 0..THREADS {
            scope.spawn(move || traffic(100 + seed, false, STEPS));
        }
    });
}

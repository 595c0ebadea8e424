//! T30: handles whose strategy is erased, against `bytes::Bytes`.

use std::collections::HashMap;
use std::thread;

use bufcore::{Buf, BufferPool, Lease, SharedBytes};
use bytes::Bytes;

use super::scaled;
use crate::Kit;

/// What the compiler has to say of it.
const _: fn() = || {
    fn holds<T: Send + Sync + Clone + Default + Ord + std::hash::Hash + std::fmt::Debug + 'static>() {}
    holds::<SharedBytes>();
};

/// A handle, what it has to show, and the memory that it is of; 0 for static bytes.
struct Pair {
    shared: SharedBytes,
    model: Bytes,
    memory: usize,
}

/// How many handles hold each memory.
#[derive(Default)]
struct Counts(HashMap<usize, usize>);

impl Counts {
    fn of(pairs: &[Pair]) -> Self {
        let mut counts = Self::default();
        for pair in pairs.iter().filter(|pair| !pair.shared.is_empty()) {
            *counts.0.entry(pair.memory).or_default() += 1;
        }
        counts
    }

    fn check(&self, pair: &Pair) {
        assert_eq!(pair.shared, pair.model);
        assert_eq!(pair.model, pair.shared.as_slice());
        assert_eq!(pair.shared.is_static(), pair.shared.is_empty() || pair.memory == 0);
        let others = self.0.get(&pair.memory).copied().unwrap_or(0);
        let is_unique = !pair.shared.is_static() && others == 1;
        assert_eq!(
            pair.shared.is_unique(),
            is_unique,
            "{} bytes of memory {}",
            pair.shared.len(),
            pair.memory
        );
    }
}

fn filled<L: Lease>(mut buf: Buf<L>, rng: &mut fastrand::Rng, len: usize) -> Buf<L> {
    buf.spare_mut()[..len].fill_with(|| rng.u8(..));
    buf.commit(len);
    buf
}

/// Runs generated programs: handles of buffers, of vectors and of static bytes are cloned, cut,
/// split, sent away, turned back, and dropped in any order, before and after the pool.
pub fn t30_one_handle<P: BufferPool>(kit: &Kit<P>) {
    static STATIC: [u8; 300] = [7; 300];
    const STEPS: usize = 200;
    for program in 0..scaled(500_000).div_ceil(STEPS) {
        let mut rng = fastrand::Rng::with_seed(program as u64);
        let mut pool = (kit.make)();
        let mut pairs: Vec<Pair> = Vec::new();
        let mut elsewhere = Vec::new();
        for step in 1..=STEPS {
            let made = pairs.is_empty() || rng.u8(..4) == 0;
            if made {
                let len = rng.usize(..300);
                let (shared, model, memory) = match rng.u8(..8) {
                    0 => {
                        let bytes: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
                        (SharedBytes::from(bytes.clone()), Bytes::from(bytes), step)
                    }
                    1 => (SharedBytes::from_static(&STATIC[..len]), Bytes::from_static(&STATIC[..len]), 0),
                    _ => {
                        let Ok(buf) = pool.acquire(len) else { continue };
                        let view = filled(buf, &mut rng, len).freeze();
                        let (at, model) = (view.as_ptr(), Bytes::copy_from_slice(&view));
                        let shared = SharedBytes::from(view);
                        assert!(len == 0 || shared.as_ptr() == at, "the bytes have moved");
                        (shared, model, step)
                    }
                };
                pairs.push(Pair { shared, model, memory });
                continue;
            }
            let at = rng.usize(..pairs.len());
            let pair = &mut pairs[at];
            let (len, memory) = (pair.shared.len(), pair.memory);
            let cut = rng.usize(..=len);
            let part = match rng.u8(..10) {
                0 => Some((pair.shared.clone(), pair.model.clone())),
                1 => {
                    let end = rng.usize(cut..=len);
                    Some((pair.shared.slice(cut..end), pair.model.slice(cut..end)))
                }
                2 => {
                    let part = &pair.shared[cut..];
                    Some((pair.shared.slice_ref(part), pair.model.slice(cut..)))
                }
                3 => Some((pair.shared.split_to(cut), pair.model.split_to(cut))),
                4 => Some((pair.shared.split_off(cut), pair.model.split_off(cut))),
                5 => {
                    pair.shared.consume(cut);
                    pair.model = pair.model.slice(cut..);
                    None
                }
                6 => {
                    pair.shared.truncate(cut);
                    pair.model.truncate(cut);
                    None
                }
                7 => {
                    let Pair { shared, .. } = pairs.swap_remove(at);
                    // Enough that releases meet, and not so many threads that this takes long.
                    if step % 8 == 0 {
                        elsewhere.push(thread::spawn(move || drop(shared)));
                    }
                    None
                }
                8 => {
                    let pair = pairs.swap_remove(at);
                    pairs.push(there_and_back::<P::Lease>(pair, &mut rng));
                    None
                }
                _ => {
                    pair.shared.clear();
                    pair.model.clear();
                    None
                }
            };
            pairs.extend(part.map(|(shared, model)| Pair { shared, model, memory }));
            if step % 16 == 0 {
                elsewhere.drain(..).for_each(|handle| handle.join().expect("dropping does not panic"));
                let counts = Counts::of(&pairs);
                pairs.iter().for_each(|pair| counts.check(pair));
            }
        }
        elsewhere.into_iter().for_each(|handle| handle.join().expect("dropping does not panic"));
        if program % 2 == 0 {
            drop(pool);
            rng.shuffle(&mut pairs);
            pairs.into_iter().for_each(|pair| assert_eq!(pair.shared, pair.model));
        } else {
            drop(pairs);
            assert_eq!(pool.stats().in_use, 0, "a handle was not released");
        }
    }
}

/// Turns a handle back to a view, to a buffer if that can be, and to a handle again.
fn there_and_back<L: Lease>(pair: Pair, rng: &mut fastrand::Rng) -> Pair {
    let Pair { shared, model, memory } = pair;
    let is_unique = shared.is_unique();
    let view = match shared.downcast::<L>() {
        Ok(view) => view,
        Err(shared) => return Pair { shared, model, memory },
    };
    assert_eq!((&view[..], view.is_unique()), (&model[..], is_unique));
    match view.try_into_mut() {
        Err(view) => {
            assert!(!is_unique, "the only view does not become a buffer");
            Pair { shared: view.into(), model, memory }
        }
        Ok(mut buf) => {
            assert!(is_unique && buf.capacity() >= buf.len(), "{buf:?}");
            let len = buf.len();
            buf.clear();
            let buf = filled(buf, rng, len);
            let model = Bytes::copy_from_slice(&buf);
            Pair { shared: buf.into(), model, memory }
        }
    }
}

//! An exact recording has what an allocator behind it has counted, over threads that allocate and
//! free for each other.

use std::path::Path;
use std::sync::mpsc;
use std::thread;

use buftrace::{Ending, EventKind, start_heap_recording};

use crate::count::{COUNTS, MIN_BYTES};
use crate::{Temporary, run as run_scenario};

const THREADS: u64 = 4;
const REQUESTS: usize = 3000;

/// Each thread sends what it allocates to the next one, which frees it.
pub(crate) fn run(file: &Path) {
    start_heap_recording(file, &format!("exact,min={MIN_BYTES}")).expect("it starts");
    COUNTS.turn(true);
    let (mut senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::sync_channel(8)).unzip();
    senders.rotate_left(1);
    let workers = (0..).zip(senders.into_iter().zip(receivers)).map(|(seed, (to, from))| {
        thread::spawn(move || {
            let mut random = fastrand::Rng::with_seed(seed);
            let free = thread::spawn(move || from.into_iter().map(|buf: Vec<u8>| buf.len()).sum::<usize>());
            for _ in 0..REQUESTS {
                let bytes = random.usize(1..4096);
                let buf = if random.bool() { vec![0; bytes] } else { Vec::with_capacity(bytes) };
                to.send(buf).expect("somebody frees");
            }
            drop(to);
            free.join().unwrap()
        })
    });
    let workers: Vec<_> = workers.collect();
    for worker in workers {
        worker.join().unwrap();
    }
    COUNTS.turn(false);
    buftrace::stop_heap_recording();
    print!("{}", COUNTS.line());
}

#[test]
fn exact_recordings_have_all() {
    let file = Temporary::new("sums");
    let output = run_scenario("sums", &file.0);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let counts = text.lines().find_map(|line| line.strip_prefix("COUNTS ")).expect("counts");
    let counts: Vec<u64> = counts.split(' ').map(|count| count.parse().unwrap()).collect();

    let profile = file.profile();
    assert_eq!((profile.ending(), profile.lost(), profile.is_exact()), (Ending::Stopped, 0, true));
    let objects = profile.objects();
    let sum = |value: fn(&buftrace::Object) -> u64| objects.iter().map(value).sum::<u64>();
    let recorded = [
        objects.len() as u64,
        sum(|object| object.bytes),
        sum(|object| u64::from(object.zeroed)),
        sum(|object| u64::from(object.released.is_some())),
    ];
    assert_eq!(recorded.as_slice(), counts);
    assert!(counts[0] > THREADS * REQUESTS as u64 / 2, "{counts:?}");

    let elsewhere =
        objects.iter().filter(|object| object.released.is_some_and(|(_, by)| by != object.thread));
    assert!(elsewhere.count() > objects.len() / 2, "the other thread frees");
    // Twice as many threads as workers, and that of the test; a number is used again.
    let threads = objects.iter().map(|object| object.thread).max().unwrap();
    assert!(threads <= 2 * THREADS as u32 + 1, "{threads} threads");

    let trace = profile.expanded_trace(usize::MAX, |_| true);
    let acquires = trace.events().iter().filter(|event| matches!(event.kind, EventKind::Acquire { .. }));
    assert_eq!(acquires.count(), objects.len());
    let sites: f64 = profile.sites().iter().map(|site| site.count).sum();
    assert_eq!(sites, objects.len() as f64);
}

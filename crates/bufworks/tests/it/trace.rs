//! A recorded server, replayed in the order of the recording on as many threads: how much memory a
//! pool without settings takes.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use buftrace::{EventKind, Trace};
use bufworks::Keeper;
use bufworks::shard::ShardPool;
use testkit::process::{alone, resident_bytes, status_bytes};

const MIB: usize = 1 << 20;
/// Stack that each thread has used before memory is measured.
const STACK_BYTES: usize = 24 << 10;

/// By how much resident memory had grown.
#[derive(Debug)]
struct Grown {
    peak: usize,
    /// A second after the last event, with all threads still there.
    idle: usize,
}

/// Replays `trace` with what `acquire` makes of a number of bytes, written from end to end.
fn replay<B: Send>(trace: &Trace, acquire: impl Fn(usize) -> B + Sync) -> Grown {
    let bufs: Mutex<Vec<Option<B>>> = Mutex::new((0..trace.ids()).map(|_| None).collect());
    let bufs = || bufs.lock().expect("nothing panics");
    thread::scope(|scope| {
        let (done, is_done) = channel();
        let threads: Vec<Sender<EventKind>> = (0..trace.threads())
            .map(|_| {
                let (tell, events) = channel();
                let (done, bufs, acquire) = (done.clone(), &bufs, &acquire);
                scope.spawn(move || {
                    use_stack();
                    done.send(()).expect("the trial listens");
                    for event in events {
                        match event {
                            EventKind::Acquire { id, bytes } => {
                                let buf = acquire(bytes as usize);
                                bufs()[id as usize] = Some(buf);
                            }
                            EventKind::Release { id } => {
                                let buf = bufs()[id as usize].take();
                                drop(buf);
                            }
                        }
                        done.send(()).expect("the trial listens");
                    }
                });
                tell
            })
            .collect();
        threads.iter().for_each(|_| is_done.recv().expect("it starts"));
        let before = resident_bytes();
        fs::write("/proc/self/clear_refs", "5").expect("the peak so far can be forgotten");
        for event in trace.events() {
            threads[event.thread as usize].send(event.kind).expect("it listens");
            is_done.recv().expect("it answers");
        }
        let peak = status_bytes("VmHWM").saturating_sub(before);
        // What the trace ends with is not idle.
        bufs().iter_mut().for_each(|buf| *buf = None);
        thread::sleep(Duration::from_secs(1));
        let idle = status_bytes("VmRSS").saturating_sub(before);
        // They end with this.
        drop(threads);
        Grown { peak, idle }
    })
}

/// Uses as much stack as the replay will.
#[inline(never)]
fn use_stack() {
    std::hint::black_box([1_u8; STACK_BYTES]);
}

/// A server of 192 threads, each of which does little. A pool without settings takes at most a
/// third more than vectors do at the peak. A second after the last request its keeper has freed
/// nearly all of it, and the system has it back.
#[test]
fn resident_memory_of_a_server() {
    alone(module_path!(), "resident_memory_of_a_server", Duration::from_secs(300), || {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/traces/nginx.buftrace");
        let trace = Trace::decode(&fs::read(file).expect("it is there")).expect("it is a trace");
        assert!(trace.threads() > 100, "the trial measures nothing");
        let vectors = replay(&trace, |bytes| vec![1_u8; bytes]);
        let pool = ShardPool::new().expect("settings are right");
        let keeper = Keeper::new().watch(&pool).spawn().expect("a thread starts");
        let pooled = replay(&trace, |bytes| {
            let mut buf = pool.acquire(bytes).expect("room");
            buf.resize(bytes, 1).expect("asked for");
            buf
        });
        let reserved = pool.stats().reserved_bytes;
        drop(keeper);
        println!("vectors: {vectors:?}, pool: {pooled:?}, of which it has {reserved}");
        assert!(pooled.peak * 10 <= vectors.peak * 13, "{pooled:?}, {vectors:?} of vectors");
        assert!(reserved < MIB, "{reserved} bytes are the pool's");
        assert!(pooled.idle <= 6 * MIB, "{pooled:?}"); // 28 KiB a thread
    });
}

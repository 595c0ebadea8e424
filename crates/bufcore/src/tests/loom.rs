//! Models of the count of a memory's handles, for every interleaving that loom finds.

use loom::sync::Arc;
use loom::thread;
use testkit::models::{Shadow, the_last_has_it_alone};

use crate::lease::ref_count::RefCount;

/// Counts of a memory with two handles.
fn two_views() -> RefCount {
    let views = RefCount::new();
    views.init(2);
    views
}

#[test]
fn loom_the_last_view_releases() {
    the_last_has_it_alone(two_views, RefCount::release);
}

/// One of two handles goes: a thread that finds that it has the other one left has the memory
/// alone.
#[test]
fn loom_the_only_view_may_write() {
    loom::model(|| {
        let shared = Arc::new((two_views(), Shadow::default()));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.read();
                assert!(!shared.0.release(), "another is left");
            })
        };
        thread::yield_now();
        if shared.0.is_one() {
            shared.1.write();
        }
        other.join().unwrap();
    });
}

//! Processes that are killed while operations are in flight.

use testkit::process::alone;
use testkit::sandbox::{Ended, forked};

use bufuring::Descriptor;

use crate::{LIMIT, PAGE, arena, file, page, pool_in, ring, stream};

#[test]
fn a_process_is_killed_with_operations_in_flight() {
    alone(module_path!(), "a_process_is_killed_with_operations_in_flight", LIMIT, || {
        for _ in 0..20 {
            let ended = forked(LIMIT, || {
                let arena = arena();
                let Some(driver) = ring(&arena) else { return 1 };
                let mut pool = pool_in(&arena, 64);
                let file = Descriptor::new(file("killed", libc::O_DIRECT));
                let mut group = driver.group(pool_in(&arena, 4), 4, PAGE);
                group.refill(&driver).expect("the pool has pages");
                let (_near, far) = stream();
                let mut all = Vec::new();
                for at in 0..32 {
                    let mut buf = page(&mut pool);
                    buf.resize(PAGE, at).expect("a page is long enough");
                    all.push(driver.write_at(&file, buf, u64::from(at) * PAGE as u64));
                    all.push(driver.read(&far, page(&mut pool), PAGE));
                }
                driver.submit().expect("the kernel takes them");
                // SAFETY: no pointers are passed; it ends this process.
                unsafe { libc::raise(libc::SIGKILL) };
                2
            });
            assert!([Ended::Killed(libc::SIGKILL), Ended::With(1)].contains(&ended), "{ended:?}");
        }
    });
}

//! Pools on the heap: what of them outlives its pool, and that it all comes back.

use bufkit::orphan;
use bufmirror::MirrorRing;
use bufring::RingPool;
use bufslot::SlotPool;
use no_std_scenarios::{Checked, check, ok, stream};

use crate::bump;

pub(crate) fn all() -> Checked {
    slots()?;
    ring()?;
    stream::around(ok!(MirrorRing::new(1000)))?;
    check!(bump::outstanding() == 0);
    Ok(())
}

fn ring() -> Checked {
    let mut ring = ok!(RingPool::new(4096));
    let mut small = ok!(ring.acquire(100));
    ok!(small.extend_from_slice(b"outlives its ring"));
    drop(ring);
    check!(orphan::pending() == 1);
    check!(&small[..] == b"outlives its ring");
    drop(small);
    check!(orphan::pending() == 0);
    check!(bump::outstanding() == 0);
    Ok(())
}

fn slots() -> Checked {
    let mut pool = ok!(SlotPool::new(4096, 2));
    let mut small = ok!(pool.acquire(100));
    ok!(small.extend_from_slice(b"outlives its pool"));
    let large = ok!(pool.acquire(100_000));
    check!(large.lease().is_fallback() && !small.lease().is_fallback());
    drop(large);
    drop(pool);
    check!(orphan::pending() == 1);
    check!(&small[..] == b"outlives its pool");
    drop(small);
    check!(orphan::pending() == 0);
    check!(bump::outstanding() == 0);
    Ok(())
}

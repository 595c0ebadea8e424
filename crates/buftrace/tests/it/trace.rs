//! The rules T1 to T4.

use buftrace::{MAX_BYTES, MAX_TIME_NS, Meta, Trace, TraceError};

use crate::{acquire, release};

#[test]
fn what_a_trace_knows() {
    let events = vec![acquire(5, 0, 0, 100), acquire(7, 1, 1, 0), release(7, 1, 0), acquire(9, 0, 0, 8)];
    let trace = Trace::new(Meta::new("t"), events.clone()).unwrap();
    assert_eq!(trace.events(), events);
    assert_eq!((trace.ids(), trace.threads(), trace.duration_ns()), (2, 2, 9));
    assert_eq!(trace.out_at_end(), [0, 1]);
    assert!(!trace.meta().cut);

    let cut = trace.clone().prefix(3);
    assert_eq!(cut.events(), &events[..3]);
    assert_eq!((cut.out_at_end(), cut.duration_ns(), cut.meta().cut), (vec![1], 7, true));
    assert_eq!(trace.clone().prefix(4), trace);
    assert_eq!(trace.prefix(0).ids(), 0);
}

#[test]
fn rules_are_checked() {
    let cases = [
        (vec![acquire(5, 0, 0, 1), release(4, 0, 0)], TraceError::TimeGoesBack { at_ns: 4, before_ns: 5 }),
        (vec![acquire(MAX_TIME_NS + 1, 0, 0, 1)], TraceError::TimeTooLate { at_ns: MAX_TIME_NS + 1 }),
        (vec![acquire(0, 0, 0, MAX_BYTES + 1)], TraceError::TooLarge { bytes: MAX_BYTES + 1 }),
        (vec![acquire(0, 0, 0, 1), acquire(0, 0, 0, 1)], TraceError::AcquiredTwice { id: 0 }),
        (vec![release(0, 0, 0)], TraceError::NotOut { id: 0 }),
        (vec![acquire(0, 0, 0, 1), release(0, 0, 0), release(0, 0, 0)], TraceError::NotOut { id: 0 }),
        (vec![acquire(0, 0, 1, 1)], TraceError::Sparse { number: 1, limit: 0 }),
        (vec![acquire(0, 1, 0, 1)], TraceError::Sparse { number: 1, limit: 0 }),
        (vec![acquire(0, u32::MAX, 0, 1)], TraceError::Sparse { number: u32::MAX, limit: 0 }),
        (vec![release(0, 0, u32::MAX)], TraceError::NotOut { id: u32::MAX }),
    ];
    for (events, error) in cases {
        assert_eq!(Trace::new(Meta::default(), events.clone()), Err(error), "{events:?}");
    }
    let extremes = vec![acquire(MAX_TIME_NS, 0, 0, MAX_BYTES), release(MAX_TIME_NS, 0, 0)];
    let trace = Trace::new(Meta::default(), extremes).unwrap();
    assert_eq!(Trace::decode(&trace.encode()).unwrap(), trace);
    assert_eq!(trace.summary().max_live_bytes, MAX_BYTES);

    let meta = Meta::new("x".repeat(4097));
    assert_eq!(Trace::new(meta, vec![]), Err(TraceError::TextTooLong { bytes: 4097 }));
}

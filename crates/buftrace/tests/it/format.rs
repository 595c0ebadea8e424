//! The file format: exact bytes, round trips, and whatever else may stand in a file.

use buftrace::format::{MAGIC, MAX_TEXT_BYTES};
use buftrace::{DecodeError, Event, EventKind, Fault, MAX_BYTES, Meta, Trace, TraceError};
use proptest::prelude::*;
use testkit::words::says;

use crate::{acquire, release};

fn small() -> Trace {
    let meta = Meta { made_by: "by hand".into(), date: "2026-01-31".into(), cut: true, ..Meta::new("näme") };
    let events = vec![
        acquire(10, 0, 0, 300),
        acquire(1_000_010, 1, 1, 0),
        release(1_000_010, 0, 0),
        release(1_000_011, 0, 1),
    ];
    Trace::new(meta, events).unwrap()
}

#[test]
fn the_bytes_are_those_of_the_description() {
    let mut expected = b"BUFTRACE\x01\x01\x05n\xc3\xa4me\x07by hand\x0a2026-01-31\x04".to_vec();
    expected.extend([10 << 2, 0, 0xac, 0x02]); // 10 ns later, buffer 0, 300 = 2 * 128 + 44 bytes
    expected.extend([0x82, 0x92, 0xf4, 0x01, 1, 1, 0]); // 1 000 000 * 4 + 2: another thread, 1; buffer 1; no bytes
    expected.extend([3, 0, 0]); // at once, on thread 0: release of buffer 0
    expected.extend([4 + 1, 1]); // 1 ns later: release of buffer 1
    assert_eq!(small().encode(), expected);
    assert_eq!(Trace::decode(&expected), Ok(small()));
}

#[test]
fn no_prefix_of_a_file_is_one() {
    let file = small().encode();
    for length in 0..file.len() {
        let error = Trace::decode(&file[..length]).unwrap_err();
        assert!(error.offset <= length, "{error}");
        let fault = if length < MAGIC.len() { Fault::NotATrace } else { Fault::Truncated };
        assert_eq!(error.fault, fault, "{length} bytes: {error}");
    }
}

/// A file without texts, with `rest` behind them.
fn file_of(rest: &[u8]) -> Vec<u8> {
    [&MAGIC[..], &[1, 0, 0, 0, 0], rest].concat()
}

#[test]
fn faults_say_what_and_where() {
    let cases: &[(Vec<u8>, usize, Fault)] = &[
        (b"something else".to_vec(), 0, Fault::NotATrace),
        (b"BUFTRACE\x02".to_vec(), 8, Fault::UnknownVersion { version: 2 }),
        (b"BUFTRACE\x01\x03".to_vec(), 9, Fault::UnknownFlags { flags: 3 }),
        (b"BUFTRACE\x01\x00\x02\xff\xff".to_vec(), 11, Fault::BadText),
        (
            b"BUFTRACE\x01\x00\x81\x20".to_vec(),
            10,
            Fault::Trace(TraceError::TextTooLong { bytes: MAX_TEXT_BYTES + 1 }),
        ),
        (file_of(&[0, 9]), 14, Fault::TrailingBytes),
        // A million events that are not there.
        (file_of(&[0xc0, 0x84, 0x3d, 0, 0]), 13, Fault::Truncated),
        (file_of(&[0xff; 10]), 13, Fault::BadNumber),
        // Zero in two bytes; one bit over 64.
        (file_of(&[0x80, 0]), 13, Fault::BadNumber),
        (file_of(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), 13, Fault::BadNumber),
        // A thread that is the same, marked as another; an id of 33 bits.
        (file_of(&[1, 2, 0, 0, 0]), 15, Fault::BadNumber),
        (file_of(&[1, 0, 0x80, 0x80, 0x80, 0x80, 0x10, 0]), 15, Fault::BadNumber),
        (file_of(&[2, 0, 0, 1, 1, 1]), 17, Fault::Trace(TraceError::NotOut { id: 1 })),
        (file_of(&[1, 1, 0]), 14, Fault::Trace(TraceError::NotOut { id: 0 })),
    ];
    for (file, offset, fault) in cases {
        let expected = DecodeError { offset: *offset, fault: *fault };
        assert_eq!(Trace::decode(file), Err(expected), "{file:x?}");
        assert!(expected.to_string().ends_with(&format!("(at byte {offset})")), "{expected}");
    }
}

/// Each fault in one plain line with its numbers; the rule that is broken stands behind it, once.
#[test]
fn faults_in_words() {
    use core::error::Error;
    let rules: [(TraceError, &[&str]); 7] = [
        (TraceError::TimeGoesBack { at_ns: 55, before_ns: 77 }, &["55", "77"]),
        (TraceError::TimeTooLate { at_ns: 77 }, &["77 ns"]),
        (TraceError::TooLarge { bytes: 77 }, &["77 bytes"]),
        (TraceError::AcquiredTwice { id: 77 }, &["77", "acquired"]),
        (TraceError::NotOut { id: 77 }, &["77", "released"]),
        (TraceError::Sparse { number: 77, limit: 55 }, &["77", "55"]),
        (TraceError::TextTooLong { bytes: 77 }, &["77 bytes"]),
    ];
    for (rule, parts) in rules {
        says(&rule, parts);
        let error = DecodeError { offset: 99, fault: Fault::Trace(rule) };
        says(&error, &["rule", "byte 99"]);
        assert_eq!(error.source().map(ToString::to_string), Some(rule.to_string()));
    }
    let faults: [(Fault, &[&str]); 7] = [
        (Fault::NotATrace, &["not a buffer trace"]),
        (Fault::UnknownVersion { version: 77 }, &["version 77"]),
        (Fault::UnknownFlags { flags: 0x83 }, &["0x83"]),
        (Fault::Truncated, &["too early"]),
        (Fault::BadNumber, &["number"]),
        (Fault::BadText, &["UTF-8"]),
        (Fault::TrailingBytes, &["behind the last event"]),
    ];
    for (fault, parts) in faults {
        let error = DecodeError { offset: 99, fault };
        says(&error, parts);
        says(&error, &["byte 99"]);
        assert!(error.source().is_none(), "{error}");
    }
}

#[test]
fn times_of_all_events_together_are_checked() {
    // Twice the largest head: 2^62 - 1 ns and as much again.
    let head = [0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let one = file_of(&[&[1], &head[..], &[0, 1]].concat());
    assert!(Trace::decode(&one).is_ok());
    let two = file_of(&[&[2], &head[..], &[0, 1], &head[..], &[1, 1]].concat());
    let error = Trace::decode(&two).unwrap_err();
    assert!(matches!(error.fault, Fault::Trace(TraceError::TimeTooLate { .. })), "{error}");
}

/// Any trace: choices of thread and buffer are taken modulo what is possible at that point.
fn traces() -> impl Strategy<Value = Trace> {
    let steps = prop::collection::vec(
        (any::<u16>(), 0..5_u32, any::<Option<u64>>(), any::<prop::sample::Index>()),
        0..200,
    );
    (steps, ".{0,40}", ".{0,40}", any::<bool>()).prop_map(|(steps, name, made_by, cut)| {
        let (mut at_ns, mut threads, mut events) = (0, 0, Vec::new());
        let (mut out, mut free, mut ids) = (Vec::new(), Vec::new(), 0);
        for (later, thread, bytes, index) in steps {
            at_ns += u64::from(later) << (later % 20);
            let thread = thread.min(threads);
            threads = threads.max(thread + 1);
            let kind = match bytes {
                None if !out.is_empty() => {
                    let id = out.swap_remove(index.index(out.len()));
                    free.push(id);
                    EventKind::Release { id }
                }
                bytes => {
                    let id = free.pop().unwrap_or(ids);
                    ids = ids.max(id + 1);
                    out.push(id);
                    let bytes = bytes.unwrap_or(0);
                    EventKind::Acquire { id, bytes: (bytes >> (bytes % 64)).min(MAX_BYTES) }
                }
            };
            events.push(Event { at_ns, thread, kind });
        }
        Trace::new(Meta { made_by, cut, ..Meta::new(name) }, events).unwrap()
    })
}

proptest! {
    #[test]
    fn round_trip(trace in traces()) {
        let file = trace.encode();
        prop_assert_eq!(Trace::decode(&file), Ok(trace.clone()));
        let summary = trace.summary();
        prop_assert_eq!(summary.acquires, summary.releases + trace.out_at_end().len());
        prop_assert!(!summary.to_string().is_empty());
    }

    #[test]
    fn random_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Trace::decode(&bytes).is_err(), "nobody writes the magic by chance");
        // Behind a good start, anything may come.
        let file = [&MAGIC[..], &[1, 0], &bytes].concat();
        if let Ok(trace) = Trace::decode(&file) {
            prop_assert_eq!(trace.encode(), file);
        }
        // Behind an empty header, events are reached.
        let file = file_of(&bytes);
        if let Ok(trace) = Trace::decode(&file) {
            prop_assert_eq!(trace.encode(), file);
        }
    }

    /// What is accepted after a change is a trace that is written as exactly those bytes.
    #[test]
    fn changed_files_are_read_or_refused(
        trace in traces(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..4),
    ) {
        let mut file = trace.encode();
        for (at, byte, how) in changes {
            let at = at.index(file.len());
            match how {
                0 => file[at] = byte,
                1 => file.insert(at, byte),
                _ => drop(file.remove(at)),
            }
        }
        match Trace::decode(&file) {
            Ok(read) => {
                prop_assert_eq!(read.encode(), file);
                let again = Trace::new(read.meta().clone(), read.events().to_vec());
                prop_assert_eq!(again, Ok(read));
            }
            Err(error) => prop_assert!(error.offset <= file.len(), "{}", error),
        }
    }
}

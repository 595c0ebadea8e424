//! Trace files: whatever is in one, it is read as what is written in the same bytes again, or refused with the place of the fault.

use buftrace::{Fault, Trace};

/// Reads one file, as it is and behind a good start.
pub fn run(data: &[u8]) {
    read(data);
    read(&[b"BUFTRACE\x01\x00\x00\x00\x00", data].concat());
}

fn read(file: &[u8]) {
    match Trace::decode(file) {
        Ok(trace) => {
            assert!(trace.encode() == file, "another file is written");
            let again = Trace::new(trace.meta().clone(), trace.events().to_vec());
            assert_eq!(again.as_ref(), Ok(&trace));
            let summary = trace.summary();
            assert_eq!(summary.acquires, summary.releases + trace.out_at_end().len());
            assert!(!summary.to_string().is_empty());
            for limit in [0, file.len() / 2, file.len().saturating_sub(1)] {
                let cut = trace.clone().fit(limit);
                assert!(cut.encode().len() <= limit || cut.events().is_empty());
                assert_eq!(Trace::decode(&cut.encode()), Ok(cut));
            }
        }
        Err(error) => {
            assert!(error.offset <= file.len(), "{error}");
            assert!(error.fault != Fault::NotATrace || !file.starts_with(b"BUFTRACE"), "{error}");
        }
    }
}

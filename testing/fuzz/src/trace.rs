//! Trace files: whatever is in one, it is read as what is written in the same bytes again, or refused with the place of the fault.
//! Heap recordings: whatever is in one, it is read or refused, and what was read makes traces.

use buftrace::{Fault, Profile, Trace};

/// Reads one file, as it is and behind a good start.
pub fn run(data: &[u8]) {
    read(data);
    read(&[b"BUFTRACE\x01\x00\x00\x00\x00", data].concat());
    read_profile(data);
    // Behind a start and a rate, in a block whose checksum is right.
    let payload = [b"\x00\x00\x00\x01\x01\x01\x01\x40", data].concat();
    let length = u32::try_from(payload.len()).expect("inputs are short").to_le_bytes();
    let head = [b"BUFTRACE\x02\x00", &length[..], &crc32(&payload).to_le_bytes()].concat();
    read_profile(&[head, payload].concat());
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

fn read_profile(file: &[u8]) {
    match Profile::decode(file) {
        Ok(profile) => {
            let sites = profile.sites();
            assert_eq!(sites.iter().map(|site| site.samples).sum::<usize>(), profile.objects().len());
            let trace = profile.expanded_trace(1000, |_| true);
            assert!(trace.events().len() <= 1000);
            assert_eq!(Trace::decode(&trace.encode()), Ok(trace));
            for number in 0..profile.stacks() as u32 {
                for address in profile.stack(number) {
                    assert!(
                        profile.module_of(number, *address).is_none_or(|module| module.contains(*address))
                    );
                }
            }
        }
        Err(error) => assert!(error.offset <= file.len(), "{error}"),
    }
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
            for events in [0, trace.events().len() / 2] {
                let cut = trace.clone().prefix(events);
                assert_eq!(Trace::decode(&cut.encode()), Ok(cut));
            }
        }
        Err(error) => {
            assert!(error.offset <= file.len(), "{error}");
            assert!(error.fault != Fault::NotATrace || !file.starts_with(b"BUFTRACE"), "{error}");
        }
    }
}

//! The file of a heap recording: exact bytes, what is refused, and whatever else may stand in one.

use buftrace::format::MAGIC;
use buftrace::profile::format::{MAX_BLOCK_BYTES, MAX_FRAMES};
use buftrace::{DecodeError, Ending, EventKind, Fault, Profile, Trace};
use proptest::prelude::*;
use testkit::words::says;

/// A head, and a start: recorded by `r`, the program `/bin/p`, process 5, second 9, 1 to 127 bytes.
const START: &[u8] = b"\x00\x01r\x06/bin/p\x05\x09\x01";
/// Every request.
const EXACT: &[u8] = &[1, 0];
/// In front of the first record.
const FIRST: usize = 18;

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

fn block(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&length[..], &crc32(payload).to_le_bytes(), payload].concat()
}

fn file_of(payloads: &[&[u8]]) -> Vec<u8> {
    let mut file = [&MAGIC[..], &[2, 0]].concat();
    file.extend(payloads.iter().flat_map(|payload| block(payload)));
    file
}

/// A file of one block: its start, and these records.
fn recording(records: &[u8]) -> Vec<u8> {
    file_of(&[&[START, EXACT, records].concat()])
}

/// A module, a stack, two objects on two threads, of which one grows and is released.
fn small() -> Vec<u8> {
    let mut records = vec![2, 0x80, 0x20, 0x80, 0x08, 0, 7]; // 4096, 1024 long, at 0, which is 7 in its file
    records.extend(b"\x02ab\x03/so");
    records.extend([3, 2, 0x85, 0x20, 9]); // stack 1: 4101, 9
    records.extend([4 + 16, 1, 100]); // at once: a zeroed object of 100 bytes
    records.extend([0x8c + 32, 0x01, 3, 0, 20, 10]); // 2 ns later, thread 3, no stack: 20 bytes, 10 before
    records.extend([6, 2, 120]); // the first: 120 bytes
    records.extend([5 + 8 + 64, 0, 2]); // 1 ns later, thread 0: the first is released
    records.extend([7 + 64, 4, 1, 50, 60, 70, 2, 80]); // 1 ns later: 4 lost, stopped; the process
    recording(&records)
}

#[test]
fn the_bytes_are_those_of_the_description() {
    let profile = Profile::decode(&small()).unwrap();
    let info = profile.info();
    assert_eq!((&info.made_by[..], &info.program[..], info.pid, info.started_at), ("r", "/bin/p", 5, 9));
    assert_eq!(info.min_bytes, 1);
    assert_eq!((profile.stacks(), profile.stack(0), profile.stack(1)), (2, &[][..], &[4101, 9][..]));
    assert_eq!(profile.stack(2), []);
    let module = profile.module_of(0, 4101).unwrap();
    assert_eq!((&module.build_id[..], &module.path[..], module.address_in_file(4101)), ("ab", "/so", 12));
    assert!(profile.module_of(0, 9).is_none() && profile.module_of(0, 4096 + 1024).is_none());

    let [first, second] = profile.objects() else { panic!("{profile:?}") };
    assert_eq!((first.bytes, first.largest, first.resizes), (100, 120, 1));
    assert_eq!((first.zeroed, first.grown_from, first.released), (true, None, Some((3, 0))));
    assert_eq!((second.at_ns, second.thread, second.stack, second.bytes), (2, 3, 0, 20));
    assert_eq!((second.zeroed, second.grown_from, second.released), (false, Some(10), None));
    let resize = profile.resizes()[0];
    assert_eq!((resize.object, resize.at_ns, resize.thread, resize.bytes), (0, 2, 3, 120));
    assert_eq!((profile.duration_ns(), profile.lost(), profile.ending()), (4, 4, Ending::Stopped));
    let usage = profile.usage();
    assert_eq!((usage.processor_ns, usage.faults, usage.peak_bytes), (50, 60, 70));
    assert_eq!((usage.forks, usage.children_ns, profile.is_cut()), (2, 80, false));
}

/// What is kept of a large recording is as if it had ended there; the rest of the file is read.
#[test]
fn a_recording_is_cut_at_a_number_of_objects() {
    let first = Profile::decode_first(&small(), 1).unwrap();
    let [object] = first.objects() else { panic!("{first:?}") };
    assert_eq!((object.largest, object.released, first.resizes()), (100, None, &[][..]));
    assert_eq!((first.is_cut(), first.duration_ns(), first.lost()), (true, 2, 4));
    assert_eq!((first.ending(), first.usage().faults), (Ending::Stopped, 0));
    assert!(first.expanded_trace(1000, |_| true).meta().cut);
    let whole = first.whole();
    assert_eq!((whole.objects, whole.duration_ns, whole.peak_growth), (2, 4, [2.0, 1.4]));
    let bytes = Profile::decode_first(&recording(&[4, 0, 9, 6, 1, 99]), 1).unwrap();
    assert_eq!((bytes.whole().objects, bytes.whole().peak_growth), (1, [1.0, 11.0]));
    let both = Profile::decode_first(&small(), 2).unwrap();
    assert_eq!((both.objects().len(), both.resizes().len(), both.is_cut()), (2, 0, true));
    assert_eq!(Profile::decode_first(&small(), 3), Profile::decode(&small()));
    // What is left out is checked all the same: the third object was never introduced, the second
    // is released twice.
    for wrong in [&[4, 0, 1, 4, 0, 2, 5, 3][..], &[4, 0, 1, 4, 0, 2, 5, 1, 5, 1]] {
        assert_eq!(Profile::decode_first(&recording(wrong), 1).unwrap_err().fault, Fault::BadReference);
    }
}

#[test]
fn sites_and_traces_of_a_small_one() {
    let profile = Profile::decode(&small()).unwrap();
    let sites = profile.sites();
    assert_eq!(sites.iter().map(|site| site.stack).collect::<Vec<_>>(), [1, 0]);
    let site = &sites[0];
    assert_eq!((site.count, site.count_error, site.bytes, site.zeroed), (1.0, 0.0, 120.0, 1.0));
    assert_eq!((site.resizes, site.out_at_end, site.lifetimes.max_ns), (1.0, 0.0, 3));
    assert_eq!((sites[1].grown, sites[1].out_at_end_bytes), (1.0, 20.0));
    // 100 bytes for 2 ns and 120 for 1 ns; 20 bytes for the last two.
    let held = |nanos: f64, site: &buftrace::Site| (site.byte_seconds - nanos * 1e-9).abs() < 1e-15;
    assert!(held(320.0, site) && held(40.0, &sites[1]), "{sites:?}");
    let [all] = &profile.sites_by(|_| "all")[..] else { panic!("one place") };
    assert_eq!((all.stack, all.samples, all.bytes), (1, 2, 140.0));
    assert!(held(360.0, all), "{all:?}");

    let whole = profile.expanded_trace(1000, |_| true);
    let kinds: Vec<EventKind> = whole.events().iter().map(|event| event.kind).collect();
    let (acquire, release) = (|id, bytes| EventKind::Acquire { id, bytes }, |id| EventKind::Release { id });
    assert_eq!(kinds, [acquire(0, 120), acquire(1, 20), release(0)]);
    let one = profile.expanded_trace(1000, |object| object.zeroed);
    assert_eq!((one.events().len(), &one.meta().name[..], one.meta().cut), (2, "p", false));
}

/// Samples weigh what their probability says.
#[test]
fn weights() {
    let profile =
        Profile::decode(&file_of(&[&[START, &[1, 0x64], &[4, 0, 0x64], &[4, 0, 1]].concat()])).unwrap();
    let weights: Vec<_> = profile.objects().iter().map(|object| object.weight()).collect();
    assert!((weights[0] - 1.0 / (1.0 - (-1.0_f64).exp())).abs() < 1e-9, "{weights:?}");
    assert!((weights[1] - 100.5).abs() < 0.01, "{weights:?}");
    let expanded = profile.expanded_trace(1000, |_| true);
    assert!((expanded.events().len() as f64 - weights.iter().sum::<f64>()).abs() < 2.0);
    // Each object may need two events, so there is room for four of them.
    let cut = profile.expanded_trace(7, |_| true);
    assert_eq!((cut.events().len(), cut.meta().cut), (4, true));
    assert_eq!(profile.expanded_trace(0, |_| true).events(), []);
}

/// Nanoseconds after the event before, in the head of a record of one kind.
fn after(nanos: u64, kind: u64) -> Vec<u8> {
    let mut number = nanos << 6 | kind;
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

#[test]
fn the_peak_is_that_of_all_that_could_be_expanded() {
    assert_eq!(Profile::decode(&small()).unwrap().expanded_peak(|_| true), (2.0, 140.0));
    // Ten samples, each of which stands for a hundred objects: of nearly the time until the next, of
    // three times that, and until the end.
    for (moment, distance) in [(900, 1), (0, 3), (0, 99)] {
        let mut records = vec![1, 0x64];
        for number in 0..10 {
            records.extend([&after(1000 - moment, 4)[..], &[0, 1]].concat());
            if number + 1 >= distance {
                records.extend([&after(moment, 5)[..], &[distance]].concat());
            }
        }
        let profile = Profile::decode(&file_of(&[&[START, &records].concat()])).unwrap();
        let expanded = profile.expanded_trace(1 << 20, |_| true).summary();
        let (buffers, bytes) = profile.expanded_peak(|_| true);
        // The copies of eight samples at a time are whole buffers.
        let close = |one: f64, other: f64| (one - other).abs() <= 0.05 * other;
        assert!(close(buffers, expanded.max_live as f64), "{buffers}: {expanded:?}");
        assert!(close(bytes, expanded.max_live_bytes as f64), "{bytes}: {expanded:?}");
    }
}

/// Samples are near to each other by chance: a hundred objects are out at once, and no more.
#[test]
fn samples_that_are_near_to_each_other_are_no_peak() {
    let mut records = vec![1, 0x64];
    for number in 0..80 {
        // Four at once, each of which stands for a hundred objects that live for 1000 ns.
        records.extend([&after(if number % 4 == 0 { 3000 } else { 0 }, 4)[..], &[0, 1]].concat());
        if number % 4 == 3 {
            records.extend([&after(1000, 5)[..], &[4, 5, 3, 5, 2, 5, 1]].concat());
        }
    }
    let profile = Profile::decode(&file_of(&[&[START, &records].concat()])).unwrap();
    let (buffers, _) = profile.expanded_peak(|_| true);
    assert!((80.0..140.0).contains(&buffers), "{buffers}");
}

#[test]
fn a_file_is_read_up_to_its_last_whole_block() {
    let blocks: [&[u8]; 3] = [&[START, EXACT, &[4, 0, 1]].concat(), &[4, 0, 2], &[4, 0, 3]];
    let file = file_of(&blocks);
    let first = 10 + 8 + blocks[0].len();
    for length in 0..file.len() {
        let read = Profile::decode(&file[..length]);
        if length < first {
            let fault = if length < MAGIC.len() { Fault::NotATrace } else { Fault::Truncated };
            assert_eq!(read.unwrap_err().fault, fault, "{length}");
            continue;
        }
        let profile = read.unwrap();
        let (whole, rest) = ((length - first) / 11, (length - first) % 11);
        assert_eq!(profile.objects().len(), 1 + whole);
        let torn = DecodeError { offset: length - rest, fault: Fault::Truncated };
        assert_eq!(profile.ending(), if rest == 0 { Ending::Open } else { Ending::Torn(torn) });
    }
    let mut damaged = file;
    damaged[first + 8] ^= 1;
    let profile = Profile::decode(&damaged).unwrap();
    let torn = DecodeError { offset: first, fault: Fault::BadChecksum };
    assert_eq!((profile.objects().len(), profile.ending()), (1, Ending::Torn(torn)));
}

#[test]
fn faults_say_what_and_where() {
    let behind = FIRST + START.len() + EXACT.len();
    let bad = |kind| Fault::BadRecord { kind };
    let cases: &[(Vec<u8>, usize, Fault)] = &[
        (b"something else".to_vec(), 0, Fault::NotATrace),
        (
            Trace::new(buftrace::Meta::new(""), vec![]).unwrap().encode(),
            8,
            Fault::UnknownVersion { version: 1 },
        ),
        (b"BUFTRACE\x02\x01".to_vec(), 9, Fault::UnknownFlags { flags: 1 }),
        (b"BUFTRACE\x02\x00".to_vec(), 10, Fault::Truncated),
        (b"BUFTRACE\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00".to_vec(), 10, Fault::BadNumber),
        // Nothing in front of the start, and no second one.
        (file_of(&[EXACT]), FIRST, bad(1)),
        (recording(START), behind, bad(0)),
        // No rate; a stack that does not exist; bits that are for events.
        (file_of(&[&[START, &[4, 0, 1]].concat()]), FIRST + START.len(), bad(4)),
        (recording(&[4, 1, 1]), behind + 1, Fault::BadReference),
        (recording(&[1 + 8, 0]), behind, bad(1)),
        // Objects that do not exist, or were released.
        (recording(&[5, 1]), behind + 1, Fault::BadReference),
        (recording(&[4, 0, 1, 5, 0]), behind + 4, Fault::BadReference),
        (recording(&[4, 0, 1, 5, 1, 5, 1]), behind + 6, Fault::BadReference),
        (recording(&[4, 0, 1, 5, 1, 6, 1, 9]), behind + 6, Fault::BadReference),
        // Too many frames, an unknown end, events behind the end, a record over the end of its
        // block.
        (recording(&[3, MAX_FRAMES as u8 + 1, 1]), behind + 1, Fault::BadNumber),
        (recording(&[7, 0, 3]), behind + 2, Fault::BadNumber),
        (recording(&[7, 0, 1, 0, 0, 0, 0, 0, 4, 0, 1]), behind + 8, bad(4)),
        (recording(&[4, 0]), behind + 2, Fault::Truncated),
    ];
    for (file, offset, fault) in cases {
        assert_eq!(Profile::decode(file), Err(DecodeError { offset: *offset, fault: *fault }), "{file:x?}");
    }
    let mut oversized = file_of(&[START]);
    oversized.extend((MAX_BLOCK_BYTES as u32 + 1).to_le_bytes());
    oversized.extend([0; 4]);
    let ending = Profile::decode(&oversized).unwrap().ending();
    assert!(matches!(ending, Ending::Torn(error) if error.fault == Fault::BadNumber), "{ending:?}");
    for (fault, part) in
        [(Fault::BadChecksum, "checksum"), (bad(3), "kind 3"), (Fault::BadReference, "not introduced")]
    {
        says(&DecodeError { offset: 99, fault }, &[part, "byte 99"]);
    }
}

/// What holds for whatever was read.
fn check(profile: &Profile) {
    let sites = profile.sites();
    assert_eq!(sites.iter().map(|site| site.samples).sum::<usize>(), profile.objects().len());
    let trace = profile.expanded_trace(1000, |_| true);
    assert_eq!(Trace::decode(&trace.encode()), Ok(trace));
    let trace = profile.expanded_trace(100, |object| object.stack == 0);
    assert!(trace.events().len() <= 100);
}

proptest! {
    #[test]
    fn random_bytes_are_read_or_refused(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..8_u8], 0..300),
        rate in 0..127_u8,
    ) {
        prop_assert!(Profile::decode(&bytes).is_err());
        if let Ok(profile) = Profile::decode(&[&MAGIC[..], &[2, 0], &bytes].concat()) {
            check(&profile);
        }
        match Profile::decode(&file_of(&[&[START, &[1, rate], &bytes].concat()])) {
            Ok(profile) => check(&profile),
            Err(error) => prop_assert!(error.offset <= bytes.len() + 100, "{}", error),
        }
    }

    #[test]
    fn changed_files_are_read_or_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut file = small();
        let at = at.index(file.len());
        file[at] = byte;
        if let Ok(profile) = Profile::decode(&file) {
            check(&profile);
        }
        // With a checksum that is right, too.
        let mut payload = small().split_off(FIRST);
        let at = at % payload.len();
        payload[at] = byte;
        if let Ok(profile) = Profile::decode(&file_of(&[&payload])) {
            check(&profile);
        }
    }
}

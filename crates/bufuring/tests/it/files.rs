//! Reads and writes of files, in all modes.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

use bufcore::HeapPool;
use bufuring::{Descriptor, Driver, Mode, ShortWrite};

use crate::{PAGE, arena, drivers, file, page, pool_in};

fn pattern(at: usize) -> u8 {
    (at % 251) as u8
}

#[test]
fn what_is_written_is_read_in_every_mode() {
    for flags in [0, libc::O_DIRECT] {
        let arena = arena();
        for driver in drivers(&arena) {
            let mut pool = pool_in(&arena, 8);
            let file = Descriptor::new(file("written", flags));
            let mut writes = Vec::new();
            for at in 0..8 {
                let mut buf = page(&mut pool);
                for byte in at * PAGE..(at + 1) * PAGE {
                    buf.push(pattern(byte)).expect("a page is long enough");
                }
                writes.push(driver.write_at(&file, buf, (at * PAGE) as u64));
            }
            for mut write in writes {
                let done = driver.wait(&mut write).expect("the kernel answers");
                assert_eq!(done.result.expect("the disk has room"), PAGE);
                assert_eq!(done.buf.len(), PAGE, "a write leaves the buffer as it is");
            }
            let reads: Vec<_> =
                (0..8).map(|at| driver.read_at(&file, page(&mut pool), PAGE, (at * PAGE) as u64)).collect();
            for (at, mut read) in reads.into_iter().enumerate() {
                let buf =
                    driver.wait(&mut read).expect("the kernel answers").into_result().expect("it is there");
                assert!(buf.len() == PAGE);
                assert!(buf.iter().enumerate().all(|(byte, &value)| value == pattern(at * PAGE + byte)));
            }
            assert_eq!(driver.in_flight(), 0);
        }
    }
}

#[test]
fn memory_of_a_fallback_is_read_into_as_well() {
    let arena = arena();
    for driver in drivers(&arena) {
        let region = arena.part(2 * PAGE, 64).expect("there is room");
        let builder = bufslot::SlotPool::builder().slots(1);
        let mut pool = builder.build_in(region, HeapPool::new()).expect("it is large enough");
        let (inside, outside) = (pool.acquire(100).expect("free"), pool.acquire(100).expect("from the heap"));
        assert!(outside.lease().is_fallback());
        assert_eq!(driver.is_fixed(&inside, 100), driver.mode() == Mode::Registered);
        assert!(!driver.is_fixed(&outside, 100));
        let file = Descriptor::new(file("fallback", 0));
        file_of(&file).write_all_at(b"some bytes", 0).expect("the disk has room");
        for buf in [inside, outside] {
            let done = driver.wait(&mut driver.read_at(&file, buf, 100, 5)).expect("the kernel answers");
            assert_eq!(&done.into_result().expect("it is there")[..], b"bytes");
        }
    }
}

/// The same open file.
fn file_of(descriptor: &Descriptor) -> File {
    use std::os::fd::AsFd;

    File::from(descriptor.as_fd().try_clone_to_owned().expect("there are descriptors left"))
}

#[test]
fn a_buffer_is_filled_behind_what_it_has() {
    let arena = arena();
    for driver in drivers(&arena) {
        let mut pool = pool_in(&arena, 2);
        let file = Descriptor::new(file("behind", 0));
        file_of(&file).write_all_at(&[7; PAGE], 0).expect("the disk has room");
        let mut buf = page(&mut pool);
        buf.extend_from_slice(b"head").expect("there is room");
        let done = driver.wait(&mut driver.read_at(&file, buf, 2, 0)).expect("the kernel answers");
        let buf = done.into_result().expect("it is there");
        assert_eq!(&buf[..], b"head\x07\x07");
        // More than there is room for, and more than the file has.
        let done = driver.wait(&mut driver.read_at(&file, buf, usize::MAX, 10)).expect("the kernel answers");
        assert_eq!(done.result.expect("it is there"), PAGE - 10);
        let done =
            driver.wait(&mut driver.read_at(&file, done.buf, usize::MAX, 0)).expect("the kernel answers");
        assert_eq!((done.result.expect("it is there"), done.buf.len()), (4, PAGE));
        // No room at all, and the end of the file.
        let done = driver.wait(&mut driver.read_at(&file, done.buf, 1, 0)).expect("the kernel answers");
        assert_eq!(done.result.expect("nothing is read"), 0);
        let done = driver.wait(&mut driver.read_at(&file, page(&mut pool), 1, 1 << 30)).expect("it answers");
        assert_eq!((done.result.expect("nothing is read"), done.buf.len()), (0, 0));
    }
}

#[test]
fn an_error_of_the_file_returns_the_buffer() {
    let arena = arena();
    for driver in drivers(&arena) {
        let mut pool = pool_in(&arena, 1);
        let only_read = Descriptor::new(File::open("Cargo.toml").expect("the manifest is there"));
        let mut buf = page(&mut pool);
        buf.extend_from_slice(b"text").expect("there is room");
        let done = driver.wait(&mut driver.write_at(&only_read, buf, 0)).expect("the kernel answers");
        assert_eq!(done.result.expect_err("it is open to read").raw_os_error(), Some(libc::EBADF));
        assert_eq!(&done.buf[..], b"text");
        let folder = Descriptor::new(File::open(".").expect("the folder is there"));
        let done = driver.wait(&mut driver.read(&folder, done.buf, 9)).expect("the kernel answers");
        assert_eq!(done.result.expect_err("a folder is no file").raw_os_error(), Some(libc::EISDIR));
        assert_eq!(&done.buf[..], b"text");
    }
}

#[test]
fn more_can_be_in_flight_than_there_are_entries() {
    let arena = arena();
    let mut pool = pool_in(&arena, 100);
    let driver = Driver::builder().arena(&arena).entries(1).build();
    let file = Descriptor::new(file("entries", 0));
    file_of(&file).write_all_at(&[1; 100], 0).expect("the disk has room");
    let reads: Vec<_> = (0..100).map(|at| driver.read_at(&file, page(&mut pool), 1, at)).collect();
    for mut read in reads {
        let done = driver.wait(&mut read).expect("the kernel answers");
        assert_eq!(&done.into_result().expect("it is there")[..], [1]);
    }
}

#[test]
fn a_position_of_its_own_moves_on() {
    let arena = arena();
    for driver in drivers(&arena) {
        let mut pool = pool_in(&arena, 1);
        let file = Descriptor::new(file("position", 0));
        for text in [&b"one"[..], b"two"] {
            let mut buf = page(&mut pool);
            buf.extend_from_slice(text).expect("there is room");
            let done = driver.wait(&mut driver.write(&file, buf)).expect("the kernel answers");
            assert_eq!(done.result.expect("the disk has room"), 3);
        }
        let done =
            driver.wait(&mut driver.read_at(&file, page(&mut pool), 9, 0)).expect("the kernel answers");
        assert_eq!(&done.into_result().expect("it is there")[..], b"onetwo");
    }
}

/// The system takes the largest offset for the file's own position, and `pwrite` refuses it.
#[test]
fn no_offset_is_taken_for_the_position() {
    let arena = arena();
    for driver in drivers(&arena) {
        let mut pool = pool_in(&arena, 1);
        let file = Descriptor::new(file("offsets", 0));
        file_of(&file).write_all(b"text").expect("the disk has room");
        file_of(&file).seek(SeekFrom::Start(1)).expect("a file has a position");
        for offset in [u64::MAX, u64::MAX - 1, 1 << 63] {
            let mut buf = page(&mut pool);
            buf.extend_from_slice(b"new").expect("there is room");
            let write = driver.wait(&mut driver.write_at(&file, buf, offset)).expect("the kernel answers");
            let mut read = driver.read_at(&file, write.buf, 1, offset);
            let read = driver.wait(&mut read).expect("the kernel answers");
            for result in [write.result, read.result] {
                let error = result.expect_err("no file is so long");
                assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{offset} {}", driver.mode());
            }
            assert_eq!(&read.buf[..], b"new");
        }
        assert_eq!(file_of(&file).stream_position().expect("a file has a position"), 1);
        let done =
            driver.wait(&mut driver.read_at(&file, page(&mut pool), 9, 0)).expect("the kernel answers");
        assert_eq!(&done.into_result().expect("it is there")[..], b"text");
    }
}

#[test]
fn a_short_write_is_an_error_with_its_count() {
    for driver in drivers(&arena()) {
        let (near, far) = UnixStream::pair().expect("the system has sockets");
        far.set_nonblocking(true).expect("a socket can be");
        let mut pool = HeapPool::new();
        let mut buf = pool.acquire(1 << 22).expect("the heap has room");
        buf.resize(1 << 22, 7).expect("there is room");
        let mut write = driver.write(&Descriptor::new(far), buf);
        let error = driver.wait(&mut write).expect("the kernel answers").into_result();
        let error = error.expect_err("the other end reads nothing");
        assert_eq!(error.kind(), std::io::ErrorKind::WriteZero);
        let short = error.into_inner().expect("it has a source").downcast::<ShortWrite>();
        let ShortWrite { written, len } = *short.expect("it says how short");
        let mut all = Vec::new();
        (&near).read_to_end(&mut all).expect("the stream ends");
        assert_eq!((all.len(), len), (written, 1 << 22), "{}", driver.mode());
    }
}

#[test]
fn operations_are_futures() {
    let arena = arena();
    for driver in drivers(&arena) {
        let mut pool = pool_in(&arena, 4);
        let file = Descriptor::new(file("futures", 0));
        file_of(&file).write_all_at(b"abcdefgh", 0).expect("the disk has room");
        let text = driver.block_on(async {
            let mut reads = Vec::new();
            for at in 0..4 {
                reads.push(driver.read_at(&file, page(&mut pool), 2, at * 2));
            }
            let mut text = Vec::new();
            for read in reads.into_iter().rev() {
                text.extend_from_slice(&read.await.into_result().expect("it is there"));
            }
            text
        });
        assert_eq!(text, b"ghefcdab");
    }
}

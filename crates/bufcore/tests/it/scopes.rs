//! The everyday calls, with every trait in scope that a program may have there: each compiles, and
//! means one thing.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, Read as _, Write as _};

use bufcore::{Buf, ByteSink as _, ByteSource as _, HeapLease, HeapPool};
use bytes::{Buf as _, BufMut as _};

fn buf(capacity: usize, content: &[u8]) -> Buf<HeapLease> {
    let mut buf = HeapPool::new().acquire(capacity).expect("the heap has room");
    buf.extend_from_slice(content).expect("it fits");
    buf
}

#[test]
fn a_buffer_is_filled() {
    let mut buf = buf(64, b"");
    assert_eq!((buf.spare_capacity(), buf.remaining_mut(), buf.remaining()), (64, 64, 0));
    buf.reserve(3).expect("room").copy_from_slice(b"abc");
    buf.commit(3);
    buf.spare_mut()[0] = b'd';
    buf.commit(1);
    buf.put_u8(b'e');
    buf.put_slice(b"fg");
    buf.push(b'h').expect("room");
    assert_eq!(buf.write(b"ij").expect("room"), 2);
    buf.write_all(b"kl").expect("room");
    buf.flush().expect("nothing to flush");
    buf.write_str("mn").expect("room");
    buf.write_char('o').expect("room");
    write!(buf, "p{}", 1).expect("room");
    writeln!(buf, "!").expect("room");
    buf.extend(*b"qr");
    buf.extend(b"st");
    assert_eq!(buf.remaining_mut(), 64 - buf.len());
    assert_eq!(buf, "abcdefghijklmnop1!\nqrst");
}

#[test]
fn a_buffer_is_read() {
    let mut buf = buf(64, b"0123456789abcdefghij");
    assert_eq!((buf.len(), buf.remaining(), buf.has_remaining()), (20, 20, true));
    buf.advance(2);
    assert_eq!(buf.peek(), b"23456789abcdefghij");
    buf.consume(2);
    assert_eq!((buf.chunk(), buf.capacity()), (&b"456789abcdefghij"[..], 60));
    assert_eq!((buf.get_u8(), buf.get_u16()), (b'4', 0x3536));
    let mut three = [0; 3];
    buf.copy_to_slice(&mut three);
    assert_eq!(&three, b"789");
    assert_eq!(buf.copy_to_bytes(2), "ab"[..]);
    assert_eq!((buf.first(), buf.iter().len(), buf.starts_with(b"cd")), (Some(&b'c'), 8, true));
    buf.truncate(4);
    let mut text = String::new();
    buf.reader().read_to_string(&mut text).expect("text");
    assert_eq!(text, "cdef");
}

#[test]
fn a_view_is_read() {
    let mut view = buf(64, b"0123456789\nabcdefghij").freeze();
    view.advance(1);
    view.consume(1);
    assert_eq!((view.len(), view.remaining(), view.chunk()[0], view.get_u8()), (19, 19, b'2', b'2'));
    let mut two = [0; 2];
    view.copy_to_slice(&mut two);
    assert_eq!(&two, b"34");
    view.read_exact(&mut two).expect("two bytes");
    assert_eq!((&two, view.fill_buf().expect("what is left")[0]), (b"56", b'7'));
    assert_eq!(view.read(&mut two).expect("two bytes"), 2);
    let shared = view.clone();
    let bytes = view.copy_to_bytes(1);
    assert_eq!((bytes.as_ptr(), bytes[0]), (shared.as_ptr(), b'9'), "not copied");
    let mut line = String::new();
    view.read_line(&mut line).expect("a line");
    assert_eq!(line, "\n");
    // A `take` of `std::io` and of `bytes` at once.
    let mut text = String::new();
    view.clone().take(3).read_to_string(&mut text).expect("text");
    assert_eq!(
        (text.as_str(), view.clone().take(3).remaining(), view.clone().take(99).len()),
        ("abc", 3, 10)
    );
    io::copy(&mut view.split_to(4).reader(), &mut io::sink()).expect("it is read");
    assert_eq!(view.iter().copied().rev().collect::<Vec<_>>(), b"jihgfe");
    view.truncate(2);
    assert_eq!(view, b"ef");
    view.clear();
    assert!(!view.has_remaining() && view.is_empty());
}

/// A `?` behind each way to write.
#[test]
fn errors_pass_on() {
    fn formats(target: &mut Buf<HeapLease>) -> std::fmt::Result {
        write!(target, "{}", 12)?;
        target.write_str("3")
    }
    fn writes(target: &mut Buf<HeapLease>) -> io::Result<()> {
        write!(target, "{}", 12)?;
        target.push(b'3')?;
        target.write_all(b"4")
    }
    fn speaks(target: &mut Buf<HeapLease>) -> Result<(), bufcore::Error> {
        write!(target, "{}", 12)?;
        Ok(target.push(b'3')?)
    }
    let mut target = buf(10, b"");
    formats(&mut target).expect("room");
    writes(&mut target).expect("room");
    speaks(&mut target).expect("room");
    assert_eq!(target, "1231234123");
    assert_eq!(formats(&mut target), Err(std::fmt::Error));
    assert_eq!(writes(&mut target).expect_err("full").kind(), io::ErrorKind::StorageFull);
    assert!(speaks(&mut target).is_err());
    let mut target = buf(3, b"a");
    // All or nothing, through each trait.
    let text = || format_args!("{}{}", 1, 23).to_string();
    io::Write::write_fmt(&mut target, format_args!("{}{}", 1, text())).expect_err("three bytes too many");
    std::fmt::Write::write_fmt(&mut target, format_args!("{}{}", 1, text())).expect_err("the same");
    target.write_str(&text()).expect_err("one too many");
    assert_eq!(target, "a");
    target.extend(b"bc");
    assert_eq!(target, "abc");
}

#[test]
#[should_panic(expected = "extend past the capacity of 3 bytes")]
fn extending_past_the_end() {
    buf(3, b"ab").extend(b"cd");
}

#[test]
#[should_panic(expected = "a formatting trait implementation returned an error")]
fn a_value_that_does_not_format() {
    struct Broken;
    impl std::fmt::Display for Broken {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Err(std::fmt::Error)
        }
    }
    write!(buf(30, b""), "{Broken}").expect("room");
}

#[test]
fn compared_both_ways() {
    let (a, b) = (buf(8, b"same"), buf(16, b"same").freeze());
    assert_eq!(a, b);
    assert_eq!(b, a);
    assert_eq!(*a, b);
    assert_eq!(*b, a);
    let text = String::from("same");
    let vec = b"same".to_vec();
    let shared = bytes::Bytes::from_static(b"same");
    macro_rules! same {
        ($($other:expr),+) => {$(
            assert_eq!(a, $other);
            assert_eq!($other, a);
            assert_eq!(b, $other);
            assert_eq!($other, b);
        )+};
    }
    same!(b"same"[..], &b"same"[..], *b"same", b"same", vec, text, "same", *"same", shared);
    same!(bytes::BytesMut::from(&b"same"[..]));
    macro_rules! ordered {
        ($($other:expr),+) => {$(
            assert!(a < $other && b <= $other);
            assert!($other > a && $other >= b);
        )+};
    }
    ordered!(b"sane"[..], &b"sane"[..], b"sane".to_vec(), String::from("sane"), "sane");
    assert!(a < buf(4, b"sane") && a < buf(4, b"sane").freeze() && b > buf(4, b"sam").freeze());
    let mut sorted = [buf(2, b"b"), buf(2, b"a"), buf(2, b"")];
    sorted.sort();
    assert_eq!(sorted, ["", "a", "b"]);
}

#[cfg(feature = "serde")]
#[test]
fn serialized() {
    let mut buf = buf(8, b"ab");
    assert_eq!(serde_json::to_string(&buf).expect("numbers"), "[97,98]");
    buf.consume(1);
    assert_eq!(serde_json::to_string(&buf.freeze()).expect("numbers"), "[98]");
}

#[cfg(feature = "wipe")]
#[test]
fn what_is_wiped_is_not_printed() {
    let mut pool = HeapPool::new().with_wipe(true);
    let mut buf = pool.acquire(8).expect("the heap has room");
    buf.extend_from_slice(b"key").expect("it fits");
    assert_eq!(format!("{buf:?}"), "Buf { len: 3, capacity: 8, .. }");
    assert_eq!(format!("{:?}", buf.freeze()), "Frozen { len: 3, .. }");
}

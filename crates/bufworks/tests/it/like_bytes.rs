//! What the tests of the `bytes` crate ask of `Buf`, `BufMut`, `Bytes` and `BytesMut`, of the
//! buffers and views of every strategy, where they have the operation.
//!
//! Left out: growth and `reserve` (the room is that of the request), `Default`, `FromIterator` and
//! `From<Vec>` (a buffer comes from a pool), `slice_ref` of views, `set_len` and
//! `spare_capacity_mut` (all memory is initialised), `Deserialize`, and views that are consumed or
//! cut to nothing, which keep no memory here.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::IoSlice;
use std::ops::Deref;

use bufworks::{Buf, BufferPool, Frozen, Lease, SplitLease};
use bytes::{Buf as _, BufMut, Bytes};

const LONG: &[u8] = b"mary had a little lamb, little lamb, little lamb";
const SHORT: &[u8] = b"hello world";

fn filled<P: BufferPool>(pool: &mut P, capacity: usize, bytes: &[u8]) -> Buf<P::Lease> {
    let mut buf = pool.acquire(capacity).expect("a small request");
    buf.put_slice(bytes);
    buf
}

fn view<P: BufferPool>(pool: &mut P, bytes: &[u8]) -> Frozen<P::Lease> {
    filled(pool, bytes.len(), bytes).freeze()
}

fn panics<T>(call: impl FnOnce() -> T) -> bool {
    testkit::lockstep::panics(|| drop(call()))
}

/// A value of every width, read from what `make` makes of its bytes: big, little and native, whole
/// and one byte short.
macro_rules! numbers {
    ($make:expr, $($type:ty: $get:ident $get_le:ident $get_ne:ident $try:ident $put:ident $put_le:ident $put_ne:ident),+) => {$(
        let value = <$type>::from_be_bytes(std::array::from_fn(|at| 0x11 + 7 * at as u8));
        assert_eq!($make(&value.to_be_bytes()).$get(), value);
        assert_eq!($make(&value.to_le_bytes()).$get_le(), value);
        assert_eq!($make(&value.to_ne_bytes()).$get_ne(), value);
        assert_eq!($make(&value.to_be_bytes()).$try(), Ok(value));
        let short = size_of::<$type>() - 1;
        assert!($make(&value.to_be_bytes()[..short]).$try().is_err());
        assert!(panics(|| $make(&value.to_be_bytes()[..short]).$get()));
    )+};
}

macro_rules! all_numbers {
    ($with:ident, $make:expr) => {
        $with!($make,
            u16: get_u16 get_u16_le get_u16_ne try_get_u16 put_u16 put_u16_le put_u16_ne,
            u32: get_u32 get_u32_le get_u32_ne try_get_u32 put_u32 put_u32_le put_u32_ne,
            u64: get_u64 get_u64_le get_u64_ne try_get_u64 put_u64 put_u64_le put_u64_ne,
            u128: get_u128 get_u128_le get_u128_ne try_get_u128 put_u128 put_u128_le put_u128_ne,
            i16: get_i16 get_i16_le get_i16_ne try_get_i16 put_i16 put_i16_le put_i16_ne,
            i32: get_i32 get_i32_le get_i32_ne try_get_i32 put_i32 put_i32_le put_i32_ne,
            i64: get_i64 get_i64_le get_i64_ne try_get_i64 put_i64 put_i64_le put_i64_ne,
            i128: get_i128 get_i128_le get_i128_ne try_get_i128 put_i128 put_i128_le put_i128_ne,
            f32: get_f32 get_f32_le get_f32_ne try_get_f32 put_f32 put_f32_le put_f32_ne,
            f64: get_f64 get_f64_le get_f64_ne try_get_f64 put_f64 put_f64_le put_f64_ne
        )
    };
}

/// `bytes::Buf`: for whatever reads as it.
fn reads<B: bytes::Buf + Deref<Target = [u8]>>(mut make: impl FnMut(&[u8]) -> B) {
    // Empty.
    let mut empty = make(b"");
    assert!(empty.remaining() == 0 && !empty.has_remaining() && empty.chunk().is_empty());
    empty.advance(0);
    assert!(panics(|| empty.advance(1)));
    assert_eq!(make(b"").copy_to_bytes(0), Bytes::new());

    // Fresh, and step by step.
    let mut source = make(SHORT);
    assert!(source.has_remaining() && source.remaining() == SHORT.len());
    assert_eq!(source.chunk(), SHORT);
    for left in (0..SHORT.len()).rev() {
        source.advance(1);
        assert_eq!((source.remaining(), source.chunk()), (left, &SHORT[SHORT.len() - left..]));
        assert_eq!(source[..], SHORT[SHORT.len() - left..]);
    }
    assert!(panics(|| make(SHORT).advance(SHORT.len() + 1)));

    // Vectored.
    let source = make(SHORT);
    let mut slices = [IoSlice::new(&[]), IoSlice::new(&[])];
    assert_eq!(source.chunks_vectored(&mut []), 0);
    assert_eq!(source.chunks_vectored(&mut slices), 1);
    assert_eq!((&slices[0][..], &slices[1][..]), (SHORT, &b""[..]));
    assert_eq!(make(b"").chunks_vectored(&mut [IoSlice::new(&[])]), 0);

    // Copies.
    for n in 0..=SHORT.len() {
        let mut target = vec![0; n];
        let mut source = make(SHORT);
        source.copy_to_slice(&mut target);
        assert_eq!((&target[..], source.chunk()), (&SHORT[..n], &SHORT[n..]));
        let mut source = make(SHORT);
        assert_eq!(source.copy_to_bytes(n), SHORT[..n]);
        assert_eq!(source.chunk(), &SHORT[n..]);
        let mut source = make(SHORT);
        source.try_copy_to_slice(&mut target).expect("as many");
        assert_eq!(source.remaining(), SHORT.len() - n);
    }
    assert!(panics(|| make(SHORT).copy_to_slice(&mut [0; 12])));
    assert!(panics(|| make(SHORT).copy_to_bytes(12)));
    let mut source = make(SHORT);
    let error = source.try_copy_to_slice(&mut [0; 12]).expect_err("one too many");
    assert_eq!((error.requested, error.available, source.remaining()), (12, 11, 11));

    // Numbers.
    assert_eq!((make(b"\xff").get_u8(), make(b"\xff").get_i8()), (0xff, -1));
    assert!(panics(|| make(b"").get_u8()) && make(b"").try_get_i8().is_err());
    all_numbers!(numbers, make);
    for bytes in 1..=8 {
        let wide = &0x0102_0304_0506_0708_u64.to_be_bytes()[..bytes];
        assert_eq!(make(wide).get_uint(bytes), 0x0102_0304_0506_0708 >> (64 - 8 * bytes));
        assert_eq!(make(&vec![0xff; bytes]).get_int_le(bytes), -1);
        assert!(panics(|| make(wide).get_uint(bytes + 1)));
    }

    // Adapters.
    let mut front = bytes::Buf::take(make(SHORT), 5);
    assert_eq!((front.remaining(), front.chunk()), (5, &b"hello"[..]));
    front.advance(2);
    assert_eq!((front.copy_to_bytes(3), front.into_inner().chunk()), (Bytes::from("llo"), &b" world"[..]));
    let mut both = bytes::Buf::chain(make(b"hello "), make(b"world"));
    assert_eq!((both.remaining(), both.chunk()), (11, &b"hello "[..]));
    let mut slices = [IoSlice::new(&[]), IoSlice::new(&[])];
    assert_eq!(both.chunks_vectored(&mut slices), 2);
    both.advance(4);
    assert_eq!(both.copy_to_bytes(7), "o world"[..]);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut make(SHORT).reader(), &mut text).expect("text");
    assert_eq!(text.as_bytes(), SHORT);
    // Through a reference and a box.
    let mut source = make(SHORT);
    assert_eq!(first(&mut source), b'h');
    assert_eq!(first(Box::new(source)), b'e');
}

fn first(mut source: impl bytes::Buf) -> u8 {
    source.get_u8()
}

fn append(mut target: impl BufMut, byte: u8) {
    target.put_u8(byte);
}

/// What `put` writes and `get` reads.
macro_rules! puts {
    ($make:expr, $($type:ty: $get:ident $get_le:ident $get_ne:ident $try:ident $put:ident $put_le:ident $put_ne:ident),+) => {$(
        let value = <$type>::from_be_bytes(std::array::from_fn(|at| 0x11 + 7 * at as u8));
        let size = size_of::<$type>();
        let mut target = $make(3 * size);
        target.$put(value);
        target.$put_le(value);
        target.$put_ne(value);
        assert_eq!(target.len(), 3 * size);
        assert_eq!(target[..size], value.to_be_bytes());
        assert_eq!(target[size..2 * size], value.to_le_bytes());
        assert_eq!(target[2 * size..], value.to_ne_bytes());
        assert_eq!(target.$get(), value);
    )+};
}

/// `bytes::BufMut`: up to the capacity, which panics past it as a slice does.
fn writes<P: BufferPool>(pool: &mut P) {
    let mut make = |capacity| pool.acquire(capacity).expect("a small request");
    let mut target = make(64);
    let room = target.capacity();
    assert_eq!((target.remaining_mut(), target.has_remaining_mut()), (room, true));
    assert_eq!(target.chunk_mut().len(), room);
    target.put(&b"hello"[..]);
    target.put_u8(b' ');
    target.put_i8(0x77);
    target.put(&b"or"[..]);
    target.put_bytes(b'l', 2);
    assert_eq!((&target[..], target.remaining_mut()), (&b"hello worll"[..], room - 11));
    // In place.
    target.chunk_mut()[..2].copy_from_slice(b"zo");
    // SAFETY: two bytes were written, and the buffer's memory is initialised.
    unsafe { target.advance_mut(2) };
    assert_eq!(target, b"hello worllzo");
    all_numbers!(puts, make);
    let mut target = make(16);
    target.put_uint(0x0102_0304, 3);
    target.put_int_le(-2, 3);
    assert_eq!(target[..], [2, 3, 4, 0xfe, 0xff, 0xff]);
    assert!(panics(|| target.put_uint(1, 9)));

    // Full: nothing is written past the end.
    let mut target = make(32);
    let room = target.capacity();
    target.put_bytes(7, room - 1);
    assert!(panics(|| target.put_slice(b"ab")) && panics(|| target.put_u16(1)));
    assert!(panics(|| target.put_bytes(1, 2)) && panics(|| target.put(&b"ab"[..])));
    // SAFETY: it checks, and panics.
    assert!(panics(|| unsafe { target.advance_mut(2) }));
    assert_eq!((target.len(), target.remaining_mut()), (room - 1, 1));
    target.put_u8(7);
    assert!(!target.has_remaining_mut() && target.chunk_mut().len() == 0);
    assert!(target.iter().all(|&byte| byte == 7));

    // Adapters, and through a reference and a box.
    let mut limited = make(64).limit(3);
    assert_eq!((limited.remaining_mut(), limited.chunk_mut().len()), (3, 3));
    limited.put_slice(b"abc");
    assert!(panics(|| limited.put_u8(1)));
    assert_eq!(limited.into_inner(), b"abc");
    let mut writer = make(64).writer();
    std::io::Write::write_all(&mut writer, SHORT).expect("room");
    assert_eq!(writer.into_inner(), SHORT);
    let mut target = make(8);
    append(&mut target, 1);
    let mut boxed = Box::new(target);
    append(&mut boxed, 2);
    assert_eq!(*boxed, [1, 2]);
    // From one to the other.
    let mut target = make(64);
    target.put(make_from(&mut make, SHORT));
    target.put(make_from(&mut make, b"!").freeze());
    assert_eq!(target, b"hello world!");
}

fn make_from<L: Lease>(make: &mut impl FnMut(usize) -> Buf<L>, bytes: &[u8]) -> Buf<L> {
    let mut buf = make(bytes.len());
    buf.put_slice(bytes);
    buf
}

/// `Bytes`, as views have it.
fn views<P: BufferPool>(pool: &mut P) {
    let a = view(pool, b"abcdefgh");
    assert_eq!((a.len(), a.is_empty(), a[1], &a[..]), (8, false, b'b', &b"abcdefgh"[..]));
    assert_eq!(a, b"abcdefgh"[..]);

    // Slices.
    for (range, part) in [(3..5, "de"), (0..0, ""), (3..3, ""), (0..8, "abcdefgh"), (8..8, "")] {
        assert_eq!(a.slice(range), part);
    }
    assert_eq!((a.slice(3..), a.slice(..3)), (view(pool, b"defgh"), view(pool, b"abc")));
    assert_eq!((a.slice(..=3), a.slice(..).len()), (view(pool, b"abcd"), 8));
    assert!(panics(|| a.slice(5..44)) && panics(|| a.slice(44..49)) && panics(|| a.slice(..9)));
    #[allow(clippy::reversed_empty_ranges, reason = "what is tried")]
    let backwards = panics(|| a.slice(3..2));
    assert!(backwards);
    assert_eq!(a.slice(2..).slice(2..4), "ef");
    drop(a);

    // Splits, at every index, which do not copy.
    for at in 0..=LONG.len() {
        let mut whole = view(pool, LONG);
        let start = whole.as_ptr();
        let back = whole.split_off(at);
        assert_eq!((&whole[..], &back[..]), LONG.split_at(at));
        assert!(at == 0 || whole.as_ptr() == start);
        assert!(at == LONG.len() || back.as_ptr() == start.wrapping_add(at));
        let mut whole = view(pool, LONG);
        let front = whole.split_to(at);
        assert_eq!((&front[..], &whole[..]), LONG.split_at(at));
        let mut cut = view(pool, LONG);
        cut.truncate(at);
        assert_eq!(cut, LONG[..at]);
    }
    assert!(panics(|| view(pool, SHORT).split_to(12)) && panics(|| view(pool, SHORT).split_off(12)));
    assert!(panics(|| view(pool, SHORT).split_off(usize::MAX)));
    let mut a = view(pool, SHORT);
    a.truncate(15);
    assert_eq!(a, SHORT);
    a.clear();
    assert!(a.is_empty());

    // Equal and hashed as slices are.
    #[allow(clippy::mutable_key_type, reason = "what changes is not what is hashed")]
    let map = HashMap::from([(view(pool, b"key"), 1)]);
    assert_eq!((map.get(&b"key"[..]), map.get(&view(pool, b"kez"))), (Some(&1), None));
    assert_eq!(Bytes::from(view(pool, SHORT)), SHORT);

    // On to another thread, at the same time.
    let shared = view(pool, LONG);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let shared = shared.clone();
            scope.spawn(move || (0..99).for_each(|_| assert_eq!(shared.clone(), LONG)));
        }
    });

    // Uniqueness, and back to what can be written.
    let a = shared;
    assert!(a.is_unique());
    let b = a.clone();
    assert!(!a.is_unique() && !b.is_unique());
    let a = a.try_into_mut().expect_err("b shares it");
    drop(b);
    let mut buf = a.try_into_mut().expect("the only one");
    buf[0] = b'M';
    buf.truncate(4);
    buf.put_slice(b"!");
    assert_eq!(buf, "Mary!");
    // A view of a part, of what is left.
    let mut a = buf.freeze();
    a.advance(1);
    let part = a.slice(1..3);
    drop(a);
    assert_eq!(part.try_into_mut().expect("the only one"), "ry");
    let (empty, other) = (view(pool, b""), view(pool, SHORT));
    let of_other = other.slice(3..3);
    assert_eq!(other.try_into_mut().expect("an empty one is none").len(), 11);
    assert_eq!((empty.clone(), of_other), (view(pool, b""), empty));
}

/// `BytesMut`, as buffers have it.
fn buffers<P: BufferPool>(pool: &mut P) {
    let mut a = filled(pool, 16, b"hello");
    a[0] = b'J';
    assert_eq!((&a[..], a.len(), a.is_empty()), (&b"Jello"[..], 5, false));
    write!(a, " !").expect("room");
    a.write_str("x").expect("room");
    assert_eq!(a, "Jello !x");
    a.extend(b" y");
    a.extend([b'z']);
    a.extend_from_slice(b"").expect("nothing fits");
    assert_eq!(a, "Jello !x yz");
    assert_eq!(
        format!("{a:?}"),
        format!("Buf {{ len: 11, capacity: {}, bytes: b\"Jello !x yz\" }}", a.capacity())
    );
    a.resize(12, b'.').expect("room");
    assert_eq!(a, "Jello !x yz.");
    a.truncate(99);
    a.truncate(5);
    a.advance(1);
    assert_eq!((&a[..], a.remaining()), (&b"ello"[..], 4));
    a.clear();
    assert!(a.is_empty());
    a.put_slice(SHORT);
    // Frozen after each change.
    a.advance(6);
    let view = a.freeze();
    assert_eq!(view, "world");
    let mut a = filled(pool, 16, SHORT);
    a.truncate(7);
    assert_eq!(a.freeze(), "hello w");
    let mut sorted = [filled(pool, 9, b"b"), filled(pool, 9, b"ab"), filled(pool, 9, b"")];
    sorted.sort();
    assert_eq!(sorted, ["", "ab", "b"]);
    assert_eq!(format!("{:x}", filled(pool, 9, b"\x01\xfe")), "01fe");
    // Moved to another thread, and back as `Bytes`.
    let a = filled(pool, 64, LONG);
    let shared =
        std::thread::scope(|scope| scope.spawn(move || Bytes::from(a)).join().expect("it ends well"));
    assert_eq!((shared.slice(..4), shared.len()), (Bytes::from("mary"), LONG.len()));
}

/// `BytesMut::split_to` and `split_off`.
fn parts<P: BufferPool<Lease: SplitLease>>(pool: &mut P) {
    for at in 0..=LONG.len() {
        let mut back = filled(pool, 64, LONG);
        let start = back.as_ptr();
        let front = back.split_to(at);
        assert_eq!((&front[..], &back[..]), LONG.split_at(at));
        assert!(at == LONG.len() || back.as_ptr() == start.wrapping_add(at));
        // What is behind the bytes stays with the back.
        assert_eq!(front.capacity(), at);
        assert!(back.capacity() >= 64 - at);
        let mut front = filled(pool, 64, LONG);
        let back = front.split_off(at);
        assert_eq!((&front[..], &back[..]), LONG.split_at(at));
        // Frozen, shared, and put together again as texts.
        let (front, back) = (front.freeze(), back.freeze());
        let clone = front.clone();
        drop(front);
        assert_eq!([&clone[..], &back[..]].concat(), LONG);
    }
    assert!(panics(|| filled(pool, 32, SHORT).split_to(12)));
    assert!(panics(|| filled(pool, 32, SHORT).split_off(1 << 20)));
    // A loop that takes the bytes one by one from either side.
    let mut rest = filled(pool, 64, LONG);
    let firsts: Vec<_> = LONG.iter().map(|_| rest.split_to(1)).collect();
    assert_eq!(firsts.iter().flatten().copied().collect::<Vec<_>>(), LONG);
    let mut rest = filled(pool, 64, LONG);
    let mut lasts: Vec<_> = (0..LONG.len()).rev().map(|at| rest.split_off(at)).collect();
    lasts.reverse();
    assert_eq!(lasts.iter().flatten().copied().collect::<Vec<_>>(), LONG);
    // Each part is written for itself.
    let mut back = filled(pool, 64, SHORT);
    let mut front = back.split_to(5);
    front.make_ascii_uppercase();
    back.put_slice(b"!");
    assert_eq!((&front[..], &back[..]), (&b"HELLO"[..], &b" world!"[..]));
    assert!(front.push(b'x').is_err());
}

macro_rules! like_bytes {
    ($module:ident, $make:expr) => {
        mod $module {
            #[allow(unused_imports, reason = "of some strategies")]
            use bufworks::BufferPool;

            #[test]
            fn buffers_read() {
                let mut pool = $make;
                super::reads(|bytes| super::filled(&mut pool, bytes.len() + 5, bytes));
            }

            #[test]
            fn views_read() {
                let mut pool = $make;
                super::reads(|bytes| super::view(&mut pool, bytes));
            }

            #[test]
            fn buffers_write() {
                super::writes(&mut $make);
            }

            #[test]
            fn views() {
                super::views(&mut $make);
            }

            #[test]
            fn buffers() {
                super::buffers(&mut $make);
            }

            #[test]
            fn parts() {
                super::parts(&mut $make);
            }
        }
    };
}

like_bytes!(any, crate::any::built("heap"));

/// Each strategy's own pool.
macro_rules! of_each {
    (
        {}
        $($(#[$doc:meta])* [$module:ident $variant:ident $name:literal if $feature:literal] $columns:tt)*
    ) => {
        $(
            #[cfg(feature = $feature)]
            like_bytes!($module, crate::own::$module());
        )*
    };
}
strategies!(of_each! {});

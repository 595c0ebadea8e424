//! Pieces of sources, and copies with a limit.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bufcore::{ByteSource, HeapPool, Pieces, Writer, copy_up_to};

fn collect<S: ByteSource>(pieces: &mut Pieces<'_, S>) -> Vec<Vec<u8>> {
    pieces.into_iter().map(<[u8]>::to_vec).collect()
}

#[test]
fn just_the_pieces_that_were_looked_at_are_consumed() {
    let text = &b"a\nbb\n\nccc\ndd"[..];
    for looked_at in 0..=5 {
        let mut source = text;
        let mut pieces = source.pieces(b'\n');
        let seen: Vec<_> = pieces.into_iter().take(looked_at).collect();
        assert_eq!(seen, [&b"a"[..], b"bb", b"", b"ccc"][..looked_at.min(4)]);
        let taken = pieces.taken();
        assert_eq!(taken, [0, 2, 5, 6, 10, 10][looked_at]);
        drop(pieces);
        assert_eq!(source, &text[taken..]);
    }
}

#[test]
fn a_break_a_panic_and_a_second_round() {
    let mut source = &b"a\nb\nc\nd\ne"[..];
    for piece in &mut source.pieces(b'\n') {
        if piece == b"b" {
            break;
        }
    }
    assert_eq!(source, b"c\nd\ne");
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        for piece in &mut source.pieces(b'\n') {
            assert_ne!(piece, b"c");
        }
    }));
    assert!(unwound.is_err());
    assert_eq!(source, b"d\ne");
    let mut pieces = source.pieces(b'\n');
    assert_eq!((collect(&mut pieces), collect(&mut pieces)), (vec![b"d".to_vec()], vec![]));
}

#[test]
fn an_iterator_that_goes_early_has_counted_and_forgotten_pieces_consume_nothing() {
    let mut source = &b"a\nb\nc"[..];
    {
        let mut pieces = source.pieces(b'\n');
        assert_eq!(pieces.into_iter().next(), Some(&b"a"[..]));
        assert_eq!(collect(&mut pieces), [b"b"]);
    }
    assert_eq!(source, b"c");
    let mut source = &b"a\nb"[..];
    let mut pieces = source.pieces(b'\n');
    assert_eq!(collect(&mut pieces), [b"a"]);
    mem::forget(pieces);
    assert_eq!(source, b"a\nb");
}

#[test]
fn pieces_of_buffers_and_views() {
    let mut buf = HeapPool::new().acquire(32).unwrap();
    buf.extend_from_slice(b"k=v;l=w;m=").unwrap();
    assert_eq!(collect(&mut buf.pieces(b';')), [b"k=v", b"l=w"]);
    assert_eq!(&buf[..], b"m=");
    buf.extend_from_slice(b"x;").unwrap();
    let mut view = buf.freeze();
    assert_eq!(collect(&mut view.pieces(b';')), [b"m=x"]);
    assert!(view.is_empty());
}

/// A source that lends less than it did, and something else.
#[test]
fn a_source_that_shrinks() {
    struct Shrinking(Vec<&'static [u8]>, usize);
    impl ByteSource for Shrinking {
        fn peek(&mut self) -> &[u8] {
            self.0.pop().unwrap_or_default()
        }
        fn consume(&mut self, n: usize) {
            self.1 += n;
        }
    }
    let mut source = Shrinking(vec![b"x", b"abc;def;"], 0);
    let mut pieces = source.pieces(b';');
    assert_eq!(
        (collect(&mut pieces), collect(&mut pieces)),
        (vec![b"abc".to_vec(), b"def".to_vec()], vec![])
    );
    drop(pieces);
    assert_eq!(source.1, 8);
}

#[test]
fn a_copy_stops_at_its_limit() {
    for limit in [0, 1, 5, 6, usize::MAX] {
        let mut source = &b"hello"[..];
        let mut sink = Writer::new(HeapPool::new());
        let n = copy_up_to(&mut source, &mut sink, limit);
        assert_eq!((n, sink.filled(), source), (limit.min(5), &b"hello"[..n], &b"hello"[n..]));
    }
}

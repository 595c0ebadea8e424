//! What a ring of one thread and both ends of a channel have in common, so that one test is for
//! both.

use std::time::Duration;

use bufmirror::bufcore::ReserveError;
use bufmirror::{Consumer, GetError, MirrorRing, Producer, WaitError, channel};

/// A queue of bytes. The ends of a channel are in one thread's hands here, and never wait.
pub(crate) trait Ring {
    fn capacity(&self) -> usize;
    fn len(&mut self) -> usize;
    fn spare_capacity(&mut self) -> usize;
    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError>;
    fn commit(&mut self, n: usize);
    fn peek(&mut self) -> &[u8];
    fn peek_mut(&mut self) -> &mut [u8];
    fn consume(&mut self, n: usize);
    fn put(&mut self, bytes: &[u8]) -> Result<(), ReserveError>;
    fn get(&mut self, into: &mut [u8]) -> Result<(), GetError>;
    fn put_some(&mut self, bytes: &[u8]) -> usize;
    fn get_some(&mut self, into: &mut [u8]) -> usize;

    /// Waits for no time: for `room` bytes of room, and for `filled` bytes to read.
    fn wait(&mut self, _room: usize, _filled: usize) -> Option<[Result<(), WaitError>; 2]> {
        None
    }

    fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    fn clear(&mut self) {
        let len = self.len();
        self.consume(len);
    }
}

impl Ring for MirrorRing {
    fn capacity(&self) -> usize {
        self.capacity()
    }

    fn len(&mut self) -> usize {
        (*self).len()
    }

    fn spare_capacity(&mut self) -> usize {
        (*self).spare_capacity()
    }

    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        self.reserve(n)
    }

    fn commit(&mut self, n: usize) {
        self.commit(n);
    }

    fn peek(&mut self) -> &[u8] {
        (*self).peek()
    }

    fn peek_mut(&mut self) -> &mut [u8] {
        self.peek_mut()
    }

    fn consume(&mut self, n: usize) {
        self.consume(n);
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        self.put(bytes)
    }

    fn get(&mut self, into: &mut [u8]) -> Result<(), GetError> {
        self.get(into)
    }

    fn put_some(&mut self, bytes: &[u8]) -> usize {
        std::io::Write::write(self, bytes).expect("a ring never fails")
    }

    fn get_some(&mut self, into: &mut [u8]) -> usize {
        std::io::Read::read(self, into).expect("a ring never fails")
    }
}

/// Both ends of a channel.
pub(crate) struct Ends(pub(crate) Producer, pub(crate) Consumer);

/// The ends of a channel of at least `bytes`, mapped twice.
pub(crate) fn ends(bytes: usize) -> Ends {
    let (producer, consumer) = channel(bytes).expect("the system maps");
    assert_eq!(producer.is_mapped(), cfg!(any(unix, windows)) && !cfg!(miri));
    Ends(producer, consumer)
}

impl Ring for Ends {
    fn capacity(&self) -> usize {
        assert_eq!(self.0.capacity(), self.1.capacity());
        self.0.capacity()
    }

    fn len(&mut self) -> usize {
        self.1.len()
    }

    fn spare_capacity(&mut self) -> usize {
        self.0.spare_capacity()
    }

    fn reserve(&mut self, n: usize) -> Result<&mut [u8], ReserveError> {
        self.0.reserve(n)
    }

    fn commit(&mut self, n: usize) {
        self.0.commit(n);
    }

    fn peek(&mut self) -> &[u8] {
        self.1.peek()
    }

    fn peek_mut(&mut self) -> &mut [u8] {
        self.1.peek_mut()
    }

    fn consume(&mut self, n: usize) {
        self.1.consume(n);
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ReserveError> {
        self.0.put(bytes)
    }

    fn get(&mut self, into: &mut [u8]) -> Result<(), GetError> {
        self.1.get(into)
    }

    fn put_some(&mut self, bytes: &[u8]) -> usize {
        self.0.put_some(bytes)
    }

    fn get_some(&mut self, into: &mut [u8]) -> usize {
        self.1.get_some(into)
    }

    fn wait(&mut self, room: usize, filled: usize) -> Option<[Result<(), WaitError>; 2]> {
        Some([self.0.wait_timeout(room, Duration::ZERO), self.1.wait_timeout(filled, Duration::ZERO)])
    }
}

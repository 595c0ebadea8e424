//! A channel between two processes: the ring and its header in one file in memory, which both map.
//!
//! ```text
//!  file      | header: a page | the ring: whole pages |
//!  process A   positions,       mapped twice            end A
//!  process B   states           mapped twice            end B
//! ```
//!
//! # Trust
//!
//! Each process that has the file can write anywhere in it, at any time. So the safe ends,
//! [`SharedProducer`] and [`SharedConsumer`], never lend its memory. They copy, by loads and stores
//! that may race, and they check what the header says before they use it. The worst that another
//! process can do to them is to send bytes that make no sense, to stop, or to get them a
//! [`WaitError::Corrupt`](crate::WaitError). Ends that lend slices need a peer that keeps to the
//! protocol; opening them is `unsafe`.
//!
//! # Invariants
//!
//! - S1: the file's size cannot change: it is sealed, and that is checked before it is mapped. So
//!   no access faults.
//! - S2: an end holds a lock of its own on a byte of the file, by an open file of its own. The
//!   system takes it back when the process ends, however it does; that is how the other end knows.
//! - S3: the header is only accessed by atomics, and the ring, by safe ends, by `copy`'s.

mod copy;
mod file;
mod processes;

use core::fmt;
use core::mem::size_of;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bufcore::{ConfigError, RegionError};

use self::copy::Copying;
use self::file::SharedFile;
use self::processes::Processes;
use crate::channel::end::{Access, End};
use crate::channel::waking::Waking;
use crate::channel::waking::header::Header;
use crate::channel::waking::transport::Core;
use crate::map::Mirror;
use crate::map::pages::Pages;
use crate::{Consumer, Producer};

/// A ring that two processes can open: one writes, the other reads.
///
/// One process creates it and passes its file descriptor to the other, which opens it: over a Unix
/// socket, by inheritance, or as the standard input of a child. Each then takes one end. The ring
/// lives as long as a process has the descriptor or an end.
///
/// Linux on 64-bit processors only. Both processes must be of the same word size.
///
/// ```
/// use std::io::{Read, Write};
///
/// use bufmirror::SharedRing;
///
/// let ring = SharedRing::create(64 * 1024)?; // bytes, rounded up to whole pages
/// let mut producer = ring.producer()?;
///
/// // In the other process:
/// let ring = SharedRing::open(ring.as_fd().try_clone_to_owned()?)?;
/// let mut consumer = ring.consumer()?;
///
/// producer.write_all(b"hello")?;
/// drop(producer);
/// let mut text = String::new();
/// consumer.read_to_string(&mut text)?;
/// assert_eq!(text, "hello");
/// # use std::os::fd::AsFd;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SharedRing {
    file: SharedFile,
}

impl SharedRing {
    /// Creates a ring of at least `capacity` bytes, in anonymous memory.
    ///
    /// The descriptor is closed in programs that this process starts, unless it is passed to them
    /// explicitly.
    ///
    /// # Errors
    ///
    /// [`ShareError::Region`] with the failed system call.
    ///
    /// ```
    /// use std::os::fd::OwnedFd;
    /// use std::process::Stdio;
    ///
    /// use bufmirror::SharedRing;
    ///
    /// let ring = SharedRing::create(64 << 10)?;
    /// let producer = ring.producer()?; // this process keeps an end
    /// // A child gets the descriptor as its standard input, and opens the ring with it.
    /// let stdin = Stdio::from(OwnedFd::from(ring));
    /// # drop((producer, stdin));
    /// # Ok::<(), bufmirror::ShareError>(())
    /// ```
    pub fn create(capacity: usize) -> Result<Self, ShareError> {
        SharedFile::create(capacity).map(|file| Self { file })
    }

    /// Opens the ring that another process created.
    ///
    /// # Errors
    ///
    /// [`ShareError::NotARing`] if the file is something else, or its size could still change.
    ///
    /// ```
    /// use std::fs::File;
    /// use std::os::fd::OwnedFd;
    ///
    /// use bufmirror::{ShareError, SharedRing};
    ///
    /// let descriptor = OwnedFd::from(SharedRing::create(4096)?); // say, over a Unix socket
    /// let ring = SharedRing::open(descriptor)?;
    /// assert!(ring.capacity() >= 4096); // as it was created
    ///
    /// let wrong = File::open("/dev/null")?;
    /// assert_eq!(SharedRing::open(wrong.into()).unwrap_err(), ShareError::NotARing);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(file: OwnedFd) -> Result<Self, ShareError> {
        SharedFile::open(file).map(|file| Self { file })
    }

    /// Returns the number of bytes that the ring holds when full.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.file.capacity
    }

    /// Takes the writing end. It copies the given bytes.
    ///
    /// It continues at the position of the last producer, if there was one. The other end sees this
    /// end closed when it is dropped, or when its process exits and no forked child has a copy.
    ///
    /// # Errors
    ///
    /// [`ShareError::Taken`] while another process, or this one, has it; [`ShareError::Region`]
    /// with the failed system call.
    ///
    /// ```
    /// use bufmirror::{ShareError, SharedRing};
    ///
    /// let ring = SharedRing::create(4096)?;
    /// let mut consumer = ring.consumer()?;
    /// ring.producer()?.put(b"first, ").unwrap(); // taken, and dropped
    ///
    /// let mut producer = ring.producer()?; // a successor: the bytes are still there
    /// producer.put(b"second").unwrap();
    /// assert_eq!(ring.producer().unwrap_err(), ShareError::Taken); // one at a time
    /// let mut text = [0; 13];
    /// consumer.get(&mut text).unwrap();
    /// assert_eq!(&text, b"first, second");
    /// # Ok::<(), ShareError>(())
    /// ```
    pub fn producer(&self) -> Result<SharedProducer, ShareError> {
        self.take()
    }

    /// Takes the reading end. It copies the bytes that it reads.
    ///
    /// # Errors
    ///
    /// As [`producer`](Self::producer).
    ///
    /// ```
    /// use bufmirror::SharedRing;
    ///
    /// let ring = SharedRing::create(4096)?;
    /// let (mut producer, mut consumer) = (ring.producer()?, ring.consumer()?);
    /// producer.put(b"abc").unwrap();
    /// drop(consumer); // this reader is gone, say: its process was killed
    /// let mut consumer = ring.consumer()?; // another one reads what is left
    /// assert_eq!(consumer.len(), 3);
    /// # Ok::<(), bufmirror::ShareError>(())
    /// ```
    pub fn consumer(&self) -> Result<SharedConsumer, ShareError> {
        self.take()
    }

    /// Takes the writing end, as one that lends its memory.
    ///
    /// Only threads can wait with it, not futures and tasks
    /// ([`WaitError::NoTasks`](crate::WaitError::NoTasks)).
    ///
    /// # Errors
    ///
    /// As [`producer`](Self::producer).
    ///
    /// # Safety
    ///
    /// While the end lives, all processes that have the file obey the protocol: one consumer,
    /// opened by this crate, and no other access to the file's bytes.
    ///
    /// ```
    /// use bufmirror::SharedRing;
    ///
    /// let ring = SharedRing::create(4096)?;
    /// // SAFETY: no other process has the file's descriptor.
    /// let mut producer = unsafe { ring.trusted_producer()? };
    /// producer.reserve(5).unwrap().copy_from_slice(b"hello"); // in place, without a copy
    /// producer.commit(5);
    /// # Ok::<(), bufmirror::ShareError>(())
    /// ```
    pub unsafe fn trusted_producer(&self) -> Result<Producer, ShareError> {
        self.take()
    }

    /// Takes the reading end, as one that lends its memory; see
    /// [`trusted_producer`](Self::trusted_producer).
    ///
    /// # Errors
    ///
    /// As [`producer`](Self::producer).
    ///
    /// # Safety
    ///
    /// As for [`trusted_producer`](Self::trusted_producer), with one producer.
    ///
    /// ```
    /// use bufmirror::SharedRing;
    ///
    /// let ring = SharedRing::create(4096)?;
    /// // SAFETY: no other process has the file's descriptor.
    /// let mut consumer = unsafe { ring.trusted_consumer()? };
    /// ring.producer()?.put(b"hello").unwrap();
    /// assert_eq!(consumer.peek(), b"hello"); // in place, without a copy
    /// # Ok::<(), bufmirror::ShareError>(())
    /// ```
    pub unsafe fn trusted_consumer(&self) -> Result<Consumer, ShareError> {
        self.take()
    }

    fn take<const PRODUCER: bool, A: Access>(&self) -> Result<End<PRODUCER, Waking<A>>, ShareError> {
        let file = self.file.reopen()?;
        file.lock(PRODUCER)?;
        let ring = Pages::of_file(&file.file, file::HEADER_BYTES, file.capacity, 2)?;
        let transport = Processes::new(file, PRODUCER)?;
        Ok(End::new(&Core::new(Mirror::over_pages(ring), transport)))
    }
}

/// The writing end of a [`SharedRing`]. Dropping it closes the ring for the other process.
///
/// Cost: as of a [`Producer`], and a locked instruction for each call that writes,
/// since the other process may sleep.
///
/// ```
/// use std::io::Write;
///
/// use bufmirror::SharedRing;
///
/// let ring = SharedRing::create(64 << 10)?;
/// let mut producer = ring.producer()?;
/// // In the process that has the other end:
/// let mut consumer = ring.consumer()?;
/// let reader = std::thread::spawn(move || std::io::read_to_string(&mut consumer));
///
/// for number in 0..3 {
///     writeln!(producer, "sample {number}")?; // waits while the ring is full
/// }
/// drop(producer); // ends the stream
/// assert_eq!(reader.join().unwrap()?, "sample 0\nsample 1\nsample 2\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SharedProducer = End<true, Waking<Copying>>;

/// The reading end of a [`SharedRing`]. Dropping it closes the ring for the other process.
///
/// Cost: as of a [`Consumer`], and a locked instruction for each call that reads,
/// since the other process may sleep.
///
/// ```
/// use std::io::{BufRead, BufReader};
///
/// use bufmirror::SharedRing;
///
/// let ring = SharedRing::create(64 << 10)?;
/// let consumer = ring.consumer()?;
/// // In the process that has the other end:
/// let mut producer = ring.producer()?;
/// producer.put(b"one\ntwo\n")?;
/// drop(producer);
///
/// let lines: Result<Vec<_>, _> = BufReader::new(consumer).lines().collect(); // to the end
/// assert_eq!(lines?, ["one", "two"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SharedConsumer = End<false, Waking<Copying>>;

bufcore::unwind_safe!(SharedProducer, SharedConsumer);

/// Borrows the descriptor, to pass it to another process.
impl AsFd for SharedRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.file.as_fd()
    }
}

impl From<SharedRing> for OwnedFd {
    fn from(ring: SharedRing) -> Self {
        ring.file.file
    }
}

/// Why a ring could not be shared. Everything that was already open, locked or mapped is released.
///
/// ```
/// use bufmirror::{RegionError, ShareError, SharedRing};
///
/// let refused = SharedRing::create(0).unwrap_err();
/// assert_eq!(refused, ShareError::Region(RegionError::Empty));
///
/// let ring = SharedRing::create(4096)?;
/// let _reader = ring.consumer()?;
/// assert_eq!(ring.consumer().unwrap_err(), ShareError::Taken);
/// # Ok::<(), ShareError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShareError {
    /// The ring could not be mapped, or a system call failed.
    Region(RegionError),
    /// The file is not a ring of this crate, version and word size, or its size is not sealed.
    NotARing,
    /// This end is already taken.
    Taken,
}

impl From<RegionError> for ShareError {
    fn from(error: RegionError) -> Self {
        Self::Region(error)
    }
}

impl fmt::Display for ShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Region(error) => error.fmt(f),
            Self::NotARing => write!(f, "the file is not a shared ring"),
            Self::Taken => write!(f, "this end of the ring is taken"),
        }
    }
}

// What it has inside prints as itself.
impl core::error::Error for ShareError {}

/// The system's own error if the system failed; otherwise `InvalidData` or `ResourceBusy`.
impl From<ShareError> for io::Error {
    fn from(error: ShareError) -> Self {
        match error {
            ShareError::Region(error) => ConfigError::from(error).into(),
            ShareError::NotARing => Self::new(io::ErrorKind::InvalidData, error),
            ShareError::Taken => Self::new(io::ErrorKind::ResourceBusy, error),
        }
    }
}

const _: () = assert!(size_of::<Header>() + file::PREAMBLE_BYTES <= file::HEADER_BYTES);

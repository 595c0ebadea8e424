//! Frames: messages in a stream, each received into memory of a pool and written without a copy.
//!
//! A framing finds the beginning and the end of each frame: [`LengthDelimited`] and
//! [`VarintDelimited`] for frames with their length in front, [`Delimited`] for frames that end
//! with a delimiter, or your own ([`Framing`]). A [`FrameReader`] takes frames from a blocking
//! reader or, with the feature `tokio`, from a socket. [`write_frames`] writes many frames at once.
//!
//! # What is held, and what it costs
//!
//! | | in chunks, the default | [by frame](FrameReader::by_frame) |
//! | --- | --- | --- |
//! | reads | one for all available frames, up to a chunk of 8 to 64 KiB | two for each frame |
//! | copies | none, except for a frame of which a chunk holds a part: that part, once | none |
//! | held while no call runs, between frames | nothing | nothing |
//! | held while `next_frame_async` waits for the first 64 bytes of a frame | nothing | nothing before the first byte after the length |
//! | held while `next_frame` blocks in the stream | a chunk | nothing before the end of the length |
//! | held inside of a frame later | a chunk, or a buffer of its length | a buffer of its length |
//! | held while the reader waits for the pool | nothing | nothing |
//! | a frame that is kept | keeps its chunk | keeps a buffer of its length |
//!
//! A frame that fits no chunk, and each frame in the second mode, gets a buffer of the length that
//! its sender announces. The buffer is held from the first byte after the length (`next_frame`:
//! from the length on) until all bytes have arrived. A sender that stops in between therefore
//! occupies that much of a budget. The framing limits the size, and a deadline limits the time: see
//! `FrameReader::next_frame_async`.
//!
//! While the reader waits for the pool, it copies the part of a frame in a chunk to memory outside
//! of the pool, and of its budget. The copy has fewer bytes than [`Framing::max_bytes`], and with
//! [`LengthDelimited`] and [`VarintDelimited`] at most those of a chunk. The reader zeroes this
//! memory before it frees it.
//!
//! Under a budget, a blocking reader of many silent peers waits for the next frame in
//! `TcpStream::peek`, and not in `next_frame`, which holds a chunk. The guide has both calls.
//!
//! Use chunks for small frames that are processed soon. Use by-frame mode for large frames, and for
//! frames that are kept for long.
//!
//! ```
//! use bufworks::HeapPool;
//! use bufworks::frames::{FrameReader, LengthDelimited, write_frames};
//!
//! let framing = LengthDelimited::new(1 << 20); // four bytes of length; frames of up to 1 MiB
//! let mut wire = Vec::new();
//! write_frames(&mut wire, &framing, &[&b"hello"[..], b"", b"world"])?;
//!
//! let mut pool = HeapPool::new();
//! let mut frames = FrameReader::new(&wire[..], framing);
//! let mut received = Vec::new();
//! while let Some(frame) = frames.next_frame(|bytes| pool.acquire(bytes))? {
//!     received.push(frame); // a view: no copy
//! }
//! assert!(received.iter().eq([&b"hello"[..], b"", b"world"]));
//! # Ok::<(), bufworks::frames::FrameError>(())
//! ```

#[cfg(feature = "tokio-util-0_7")]
mod codec;
mod error;
mod framing;
mod reader;
mod state;
#[cfg(all(feature = "futures-core-0_3", feature = "tokio"))]
mod stream;
#[cfg(feature = "tokio")]
mod tokio;
mod write;

#[cfg(feature = "tokio")]
pub use self::tokio::{write_all_vectored_async, write_frames_async};
#[cfg(feature = "tokio-util-0_7")]
pub use codec::PoolCodec;
pub use error::FrameError;
pub use framing::{Affix, Delimited, Framing, LengthDelimited, Parsed, VarintDelimited};
pub use reader::FrameReader;
pub use write::{write_all_vectored, write_frames};

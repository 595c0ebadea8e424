//! The rows of the matrix.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::harness::shape::Shape;

/// In which order a burst goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Oldest first.
    Fifo,
    /// Newest first.
    Lifo,
    /// Any, the same for all engines.
    Random,
}

impl Order {
    /// Its name, for people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lifo => "lifo",
            Self::Random => "random",
        }
    }
}

/// Which sizes a mix has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// One after the other.
    RoundRobin,
    /// Small ones often, large ones seldom.
    Zipf,
    /// All size classes, the k-th doubling with weight 1 / k.
    Classes,
    /// One of two.
    Two,
    /// Any order of magnitude as often as any other.
    Logarithmic,
    /// Small ones, then large ones, then small ones.
    Phases,
}

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// Dropped where it was made.
    Stay,
    /// Sent to another thread, which drops it.
    Thread,
    /// Two are sent, and their drops are waited for.
    Wait,
}

/// A workload with its parameters: one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "workload", rename_all = "kebab-case")]
pub enum Case {
    /// Acquire, write the first byte, drop, while others are held.
    Reuse {
        /// Bytes of the buffer.
        bytes: usize,
        /// How many others of the size are held meanwhile.
        held: usize,
    },
    /// Acquire many, touch each, drop all.
    Burst {
        /// How many.
        count: usize,
        /// Bytes of each.
        bytes: usize,
        /// The order of the drops.
        order: Order,
    },
    /// As `Reuse`, from two pools in turn, or from one for comparison.
    TwoPools {
        /// Bytes of the buffer.
        bytes: usize,
        /// 1 or 2.
        pools: usize,
    },
    /// Different sizes, a few held at a time.
    Mixed {
        /// Which.
        sizes: Sizes,
        /// How many are held.
        held: u32,
    },
    /// The newest N buffers are held, each of random size; the pools have hardly more memory than
    /// those need.
    Queue {
        /// How many are held.
        held: usize,
    },
    /// The newest N buffers are held; each is acquired, filled to a random length, and dropped when
    /// it is the oldest.
    ShortLived {
        /// Bytes of each buffer.
        bytes: usize,
        /// How many are held.
        held: usize,
    },
    /// The same, with buffers that grow in steps up to that length.
    Growing {
        /// Bytes of the longest buffer.
        bytes: usize,
        /// How many are held.
        held: usize,
    },
    /// Many tasks, each with one buffer of random size and lifetime after the other.
    Tasks {
        /// What the sizes lie around.
        bytes: usize,
        /// Threads that the tasks are spread over.
        threads: usize,
    },
    /// Frames filled in small steps.
    Frame {
        /// What becomes of them.
        fate: Fate,
    },
    /// One thread acquires and fills, another reads and drops.
    Handoff {
        /// Bytes of each buffer.
        bytes: usize,
    },
    /// Several threads acquire, touch each page, drop.
    Threads {
        /// How many.
        threads: usize,
        /// Bytes of each buffer.
        bytes: usize,
    },
    /// Write a message into a ring of bytes and read it.
    Stream {
        /// Bytes of each message; random up to 4 KiB if none.
        bytes: Option<usize>,
        /// Bytes that stay in the ring.
        left: usize,
        /// Whether the compiler knows the length.
        constant: bool,
    },
    /// Records that come in chunks, each looked at as a whole.
    Parse {
        /// Bytes of the longest record.
        bytes: usize,
    },
    /// Bytes from one thread to another, in chunks.
    Spsc {
        /// Bytes of each chunk; random up to 2 KiB if none.
        bytes: Option<usize>,
        /// Bytes of the ring.
        ring: usize,
    },
    /// Messages from some threads to others, through one queue.
    Messages {
        /// Threads that send.
        producers: usize,
        /// Threads that receive.
        consumers: usize,
        /// Bytes of each message; random up to 4 KiB if none.
        bytes: Option<usize>,
        /// Messages that are sent and received at once.
        batch: usize,
        /// Bytes of the queue.
        ring: usize,
    },
    /// Read a large file.
    File {
        /// Bytes of each buffer.
        bytes: usize,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// Replay recorded traffic.
    Replay {
        /// The trace's file, without folder and extension.
        trace: String,
    },
    /// Traffic of any shape.
    Shape {
        /// Which.
        shape: Shape,
    },
}

impl Case {
    /// Whether several threads work on it, and wait for one another.
    #[must_use]
    pub fn has_threads(&self) -> bool {
        match self {
            Self::Tasks { threads, .. } | Self::Threads { threads, .. } => *threads > 1,
            Self::Frame { fate } => *fate != Fate::Stay,
            Self::Handoff { .. } | Self::Spsc { .. } | Self::Messages { .. } | Self::Replay { .. } => true,
            _ => false,
        }
    }

    /// The workload's name.
    #[must_use]
    pub fn workload(&self) -> &'static str {
        match self {
            Self::Reuse { held: 0, .. } => "reuse",
            Self::Reuse { .. } => "live",
            Self::Burst { .. } => "burst",
            Self::TwoPools { .. } => "pools",
            Self::Mixed { .. } => "mixed",
            Self::Queue { .. } => "queue",
            Self::ShortLived { .. } => "short-lived",
            Self::Growing { .. } => "growing",
            Self::Tasks { .. } => "tasks",
            Self::Frame { .. } => "frame",
            Self::Handoff { .. } => "handoff",
            Self::Threads { .. } => "threads",
            Self::Stream { .. } => "stream",
            Self::Parse { .. } => "parse",
            Self::Spsc { .. } => "spsc",
            Self::Messages { .. } => "messages",
            Self::File { .. } => "file",
            Self::Replay { .. } => "replay",
            Self::Shape { .. } => "shape",
        }
    }

    /// Its parameters, for people.
    #[must_use]
    pub fn parameters(&self) -> String {
        match self {
            Self::Reuse { bytes, held: 0 } | Self::Handoff { bytes } | Self::File { bytes, .. } => {
                size(*bytes)
            }
            Self::Reuse { bytes, held } => format!("{} {} live", size(*bytes), held + 1),
            Self::Burst { count, bytes, order } => {
                format!("{count} × {} {}", size(*bytes), order.name())
            }
            Self::TwoPools { bytes, pools: 1 } => format!("{} one pool", size(*bytes)),
            Self::TwoPools { bytes, pools } => format!("{} {pools} in turn", size(*bytes)),
            Self::Mixed { sizes, held } => {
                let sizes = match sizes {
                    Sizes::RoundRobin => "round-robin",
                    Sizes::Zipf => "zipf",
                    Sizes::Classes => "classes",
                    Sizes::Two => "two sizes",
                    Sizes::Logarithmic => "logarithmic",
                    Sizes::Phases => "phases",
                };
                if *held == 8 { sizes.into() } else { format!("{sizes} {held} live") }
            }
            Self::Queue { held } => format!("{held} × random"),
            Self::ShortLived { bytes, held } | Self::Growing { bytes, held } => {
                format!("{held} × {}", size(*bytes))
            }
            Self::Tasks { bytes, threads: 1 } => format!("{} 1 thread", size(*bytes)),
            Self::Tasks { bytes, threads } => format!("{} {threads} threads", size(*bytes)),
            Self::Frame { fate } => match fate {
                Fate::Stay => "stay".into(),
                Fate::Thread => "thread".into(),
                Fate::Wait => "wait".into(),
            },
            Self::Threads { threads, bytes } => format!("{threads} × {}", size(*bytes)),
            Self::Stream { bytes, left, constant } => {
                let mut text = sized(*bytes);
                if *constant {
                    text += " constant";
                }
                if *left != 0 {
                    text += &format!(" {} left", size(*left));
                }
                text
            }
            Self::Parse { bytes } => format!("up to {}", size(*bytes)),
            Self::Spsc { bytes, ring } => sized(*bytes) + &of_ring(*ring, 256 << 10),
            Self::Messages { producers, consumers, bytes, batch, ring } => {
                let by = if *batch == 1 { String::new() } else { format!(" by {batch}") };
                format!("{} {producers} to {consumers}{by}{}", sized(*bytes), of_ring(*ring, 64 << 10))
            }
            Self::Replay { trace } => trace.clone(),
            Self::Shape { shape } => shape.parameters(),
        }
    }

    /// A short, unique name, which also names it on the command line.
    #[must_use]
    pub fn id(&self) -> String {
        let parameters = self.parameters().replace(" × ", "x").replace(" B", "B").replace(" KiB", "K");
        format!("{}/{}", self.workload(), parameters.replace(" MiB", "M").replace(' ', "-"))
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.workload(), self.parameters())
    }
}

/// The size of a message.
fn sized(bytes: Option<usize>) -> String {
    bytes.map_or_else(|| "random".into(), size)
}

/// The size of a ring, if it is not the usual one.
fn of_ring(bytes: usize, usual: usize) -> String {
    if bytes == usual { String::new() } else { format!(" ring {}", size(bytes)) }
}

/// A size as people write it.
#[must_use]
pub fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1024) => format!("{} KiB", bytes >> 10),
        _ => format!("{:.1} KiB", bytes as f64 / 1024.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short() {
        let burst = Case::Burst { count: 64, bytes: 4096, order: Order::Fifo };
        assert_eq!(burst.id(), "burst/64x4K-fifo");
        assert_eq!(Case::Reuse { bytes: 64, held: 0 }.id(), "reuse/64B");
        assert_eq!(Case::File { bytes: 16 << 20, file_bytes: 1 }.id(), "file/16M");
        assert_eq!(burst.to_string(), "burst 64 × 4 KiB fifo");
        assert_eq!(Case::Growing { bytes: 1024, held: 64 }.id(), "growing/64x1K");
        assert_eq!(Case::Queue { held: 64 }.id(), "queue/64xrandom");
        let mixed = |sizes, held| Case::Mixed { sizes, held }.id();
        assert_eq!(
            (mixed(Sizes::Zipf, 8), mixed(Sizes::Two, 1)),
            ("mixed/zipf".into(), "mixed/two-sizes-1-live".into())
        );
        assert_eq!(Case::Spsc { bytes: None, ring: 64 << 10 }.id(), "spsc/random-ring-64K");
        assert_eq!(Case::TwoPools { bytes: 64, pools: 2 }.id(), "pools/64B-2-in-turn");
        assert_eq!(Case::Stream { bytes: None, left: 501, constant: false }.id(), "stream/random-501B-left");
        assert_eq!(Case::Tasks { bytes: 2048, threads: 2 }.id(), "tasks/2K-2-threads");
    }
}

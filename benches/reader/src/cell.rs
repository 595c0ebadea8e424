//! One cell: its axes, and what it measured.

use buftrials::run::name_of;
use serde::{Deserialize, Serialize};

use crate::engine::{Engine, Memory};

/// What a cell does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Reads for a time, and looks at little of what is read.
    Read,
    /// Reads all tensors once, and sums every byte of them.
    Tensors,
}

/// A row of the tables: all axes but the engine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// What is done.
    pub work: Work,
    /// Past the page cache, by `O_DIRECT`.
    pub direct: bool,
    /// Bytes of each read.
    pub bytes: usize,
    /// Reads in flight, of each thread.
    pub depth: usize,
    /// Threads, each with a driver and a pool.
    pub threads: usize,
}

impl Row {
    /// Whether this engine makes sense in this row.
    #[must_use]
    pub fn has(&self, engine: Engine, memory: Memory) -> bool {
        let fits = match engine {
            // A direct read wants pages.
            Engine::Vec => !self.direct,
            Engine::Map => !self.direct && self.depth == 1,
            Engine::Zeropool => cfg!(feature = "peers"),
            // Plain calls have one read in flight.
            Engine::Mirror => self.depth == 1,
            _ => true,
        };
        fits && engine.memories().contains(&memory)
    }

    /// The row in words.
    #[must_use]
    pub fn title(&self) -> String {
        let work = match self.work {
            Work::Read => "",
            Work::Tensors => "tensors, ",
        };
        let way = if self.direct { "O_DIRECT" } else { "page cache" };
        let threads =
            if self.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", self.threads) };
        format!("{work}{way}, {}, depth {}, {threads}", size(self.bytes), self.depth)
    }
}

/// A power of two in the largest unit.
#[must_use]
pub fn size(bytes: usize) -> String {
    bufadvise::number::exact_memory(bytes as u64)
}

/// A row with its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The row.
    pub row: Row,
    /// Where buffers come from.
    pub engine: Engine,
    /// The memory below.
    pub memory: Memory,
}

impl Cell {
    /// The engine in words.
    #[must_use]
    pub fn name(&self) -> String {
        let memory = match self.memory {
            Memory::Plain => "",
            Memory::Registered => ", registered",
            Memory::Huge => ", huge",
            Memory::HugeRegistered => ", huge, registered",
        };
        let name = match self.engine {
            Engine::Vec => "fresh Vec".to_owned(),
            Engine::Zeroed => "zeroed Vec".to_owned(),
            Engine::Aligned => "aligned Vec".to_owned(),
            Engine::Map => "memory map".to_owned(),
            other => name_of(&other),
        };
        name + memory
    }
}

/// What a cell measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Bytes that were read.
    pub bytes: u64,
    /// The number of reads.
    pub reads: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Seconds of processors, in the program and in the kernel.
    pub processor_seconds: f64,
    /// Page faults.
    pub faults: u64,
    /// Whether the driver had what the cell wanted: a ring, and the registration.
    pub as_wanted: bool,
}

impl Measured {
    /// Gigabytes a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / 1e9 / self.seconds
    }

    /// Seconds of processors for each gigabyte.
    #[must_use]
    pub fn processor(&self) -> f64 {
        self.processor_seconds / (self.bytes as f64 / 1e9)
    }

    /// Microseconds of processors for each read.
    #[must_use]
    pub fn micros(&self) -> f64 {
        self.processor_seconds * 1e6 / self.reads.max(1) as f64
    }
}

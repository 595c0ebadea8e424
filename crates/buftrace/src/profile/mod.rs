//! A recording of a program's heap, read back: sampled objects with their call stacks.

use std::fs;
use std::io;
use std::path::Path;

use crate::DecodeError;

mod decode;
mod replay;
mod sites;

pub mod format;

pub use sites::Site;

/// A recording of a program's heap.
///
/// `RecordingAlloc` (feature `heap`) makes such recordings, and so does the library for
/// `LD_PRELOAD`. A recording holds some of the requests, each with its [weight](Object::weight), or
/// all of them.
///
/// ```no_run
/// use buftrace::Profile;
///
/// let profile = Profile::load("app.heap")?;
/// for site in profile.sites().iter().take(10) {
///     println!("{:.0} objects, {:.0} bytes", site.count, site.bytes);
///     for address in profile.stack(site.stack) {
///         if let Some(module) = profile.module_of(site.stack, *address) {
///             // What `addr2line -e path address` takes.
///             println!("  {} {:#x}", module.path, module.address_in_file(address - 1));
///         }
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    info: Info,
    modules: Vec<Module>,
    /// The number of the stack before: where in `addresses` each begins. The first is stack 0.
    stack_ends: Vec<usize>,
    /// By number of a stack: how many modules were known when it was taken.
    stack_modules: Vec<usize>,
    addresses: Vec<u64>,
    objects: Vec<Object>,
    resizes: Vec<Resize>,
    duration_ns: u64,
    lost: u64,
    usage: Usage,
    ending: Ending,
    is_cut: bool,
    whole: Whole,
}

/// The header of a heap recording: the program, and the settings of the recording.
///
/// ```no_run
/// let profile = buftrace::Profile::load("app.heap")?;
/// let info = profile.info();
/// println!("{} ({}), requests from {} bytes on", info.program, info.pid, info.min_bytes);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// The recorder and its version.
    pub made_by: String,
    /// The path of the program.
    pub program: String,
    /// The process.
    pub pid: u64,
    /// When the recording began, in seconds since the start of 1970.
    pub started_at: u64,
    /// The smallest request that was recorded, in bytes.
    pub min_bytes: u64,
}

/// The resources that the process used from the start of its recording to the last block. All are
/// zero in a recording without a block.
///
/// ```no_run
/// let usage = buftrace::Profile::load("app.heap")?.usage();
/// println!("{} ns, {} page faults, {} bytes", usage.processor_ns, usage.faults, usage.peak_bytes);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Processor time of all its threads, in nanoseconds.
    pub processor_ns: u64,
    /// Page faults.
    pub faults: u64,
    /// The most bytes that were ever resident.
    pub peak_bytes: u64,
    /// The number of its forks. The children are not recorded.
    pub forks: u64,
    /// Processor time of terminated children that were waited for, in nanoseconds.
    pub children_ns: u64,
}

/// The totals of a file of which [`Profile::decode_first`] keeps a part.
///
/// ```no_run
/// let profile = buftrace::Profile::decode_first(&std::fs::read("app.heap")?, 1 << 18)?;
/// println!("{} of {} objects", profile.objects().len(), profile.whole().objects);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Whole {
    /// Objects.
    pub objects: u64,
    /// The time from the start of the recording to its end or last event, in nanoseconds.
    pub duration_ns: u64,
    /// The peak of the whole file divided by that of the kept part, in objects and in bytes; at
    /// least 1.
    pub peak_growth: [f64; 2],
}

/// A piece of code in the program's memory: of the program itself, or of a library.
///
/// ```no_run
/// let profile = buftrace::Profile::load("app.heap")?;
/// for module in profile.modules() {
///     println!("{:#x} {} {}", module.start, module.build_id, module.path);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Module {
    /// Its address in the process.
    pub start: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where it begins in its file.
    pub file_offset: u64,
    /// Its address within the file.
    pub file_address: u64,
    /// The build id of its file in hexadecimal digits; empty when it has none.
    pub build_id: String,
    /// The path of its file.
    pub path: String,
}

impl Module {
    /// Converts an address in the process to an address in the file, as `addr2line` expects it.
    ///
    /// ```no_run
    /// let profile = buftrace::Profile::load("app.heap")?;
    /// let module = &profile.modules()[0];
    /// assert_eq!(module.address_in_file(module.start), module.file_address);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn address_in_file(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start).wrapping_add(self.file_address)
    }

    /// Returns whether an address in the process is within this code.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.start).is_some_and(|distance| distance < self.bytes)
    }
}

/// A sampled allocation, from its request to its release.
///
/// ```no_run
/// let profile = buftrace::Profile::load("app.heap")?;
/// let held = profile.objects().iter().filter(|object| object.released.is_none());
/// println!("about {:.0} objects were still out", held.map(|object| object.weight()).sum::<f64>());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Object {
    /// When it was requested: nanoseconds since the recording began.
    pub at_ns: u64,
    /// The thread that requested it.
    pub thread: u32,
    /// The call stack of the request: see [`Profile::stack`].
    pub stack: u32,
    /// The bytes of the request.
    pub bytes: u64,
    /// The largest size that it ever had, in bytes.
    pub largest: u64,
    /// The previous size in bytes, if the request was a `realloc` of memory that was not sampled.
    pub grown_from: Option<u64>,
    /// The number of reallocations after that.
    pub resizes: u32,
    /// Whether zeroed memory was requested.
    pub zeroed: bool,
    /// When it was released, and by which thread. `None` if it was in use at the end.
    pub released: Option<(u64, u32)>,
    /// The mean number of bytes between two samples at the time of the request; 0 if all requests
    /// were recorded.
    pub rate: u64,
}

impl Object {
    /// Returns how many objects of the program this sample represents; 1 in an exact recording.
    ///
    /// A byte is drawn every [`rate`](Self::rate) bytes on average, so an object of `n` bytes is
    /// sampled with the probability `1 - exp(-n / rate)`. The weight is its inverse. A sum of
    /// weights estimates a count without bias.
    ///
    /// ```no_run
    /// let profile = buftrace::Profile::load("app.heap")?;
    /// let requests: f64 = profile.objects().iter().map(|object| object.weight()).sum();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn weight(&self) -> f64 {
        if self.rate == 0 {
            return 1.0;
        }
        -1.0 / (-(self.largest.max(1) as f64) / self.rate as f64).exp_m1()
    }

    /// Returns how long it was in use, if it was released, in nanoseconds.
    #[must_use]
    pub fn lifetime_ns(&self) -> Option<u64> {
        self.released.map(|(at_ns, _)| at_ns - self.at_ns)
    }
}

/// A `realloc` of a sampled object.
///
/// ```no_run
/// let profile = buftrace::Profile::load("app.heap")?;
/// for resize in profile.resizes() {
///     println!("object {} has {} bytes", resize.object, resize.bytes);
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resize {
    /// The number of the object in [`Profile::objects`].
    pub object: usize,
    /// When: nanoseconds since the recording began.
    pub at_ns: u64,
    /// The thread that reallocated it.
    pub thread: u32,
    /// Its new size in bytes.
    pub bytes: u64,
}

/// How a heap recording ends.
///
/// ```no_run
/// use buftrace::{Ending, Profile};
///
/// match Profile::load("app.heap")?.ending() {
///     Ending::Stopped => println!("whole"),
///     Ending::Limit => println!("the file reached its limit"),
///     Ending::Torn(error) => println!("the program was killed, or the disk was full: {error}"),
///     _ => println!("the program was killed, or is still running"),
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The program ended, or stopped the recording.
    Stopped,
    /// The file reached its limit while the program continued.
    Limit,
    /// The file ends after a complete block, without a reason. The program was killed, or is still
    /// running.
    Open,
    /// The file ends in the middle of a block, or has a damaged one. The rest was not read.
    Torn(DecodeError),
}

impl Profile {
    /// Reads a heap recording from a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or is not a heap recording.
    ///
    /// ```
    /// let error = buftrace::Profile::load("no-such-file").unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    /// ```
    pub fn load(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::decode(&fs::read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Returns the head.
    #[must_use]
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Returns the code that was in memory.
    #[must_use]
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Returns the code at an address of a call stack. If several libraries were loaded at that
    /// address in turn, it is the one at the time of the stack.
    ///
    /// ```no_run
    /// let profile = buftrace::Profile::load("app.heap")?;
    /// let known = |address: &&u64| profile.module_of(1, **address).is_some();
    /// println!("{} frames of stack 1 have a name", profile.stack(1).iter().filter(known).count());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn module_of(&self, stack: u32, address: u64) -> Option<&Module> {
        let known = self.stack_modules.get(stack as usize).copied().unwrap_or_default();
        let (before, behind) = self.modules.split_at(known);
        // What was found later may have been there already.
        before.iter().rev().chain(behind).find(|module| module.contains(address))
    }

    /// Returns the number of stacks. Stacks are numbered from 0.
    #[must_use]
    pub fn stacks(&self) -> usize {
        self.stack_ends.len()
    }

    /// Returns the return addresses of a call stack, innermost first. Stack 0 is the unknown one,
    /// and empty. So is a stack number that does not exist.
    ///
    /// ```no_run
    /// let profile = buftrace::Profile::load("app.heap")?;
    /// assert_eq!(profile.stack(0), []);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn stack(&self, number: u32) -> &[u64] {
        let number = number as usize;
        let Some(end) = self.stack_ends.get(number) else { return &[] };
        let start = number.checked_sub(1).map_or(0, |before| self.stack_ends[before]);
        &self.addresses[start..*end]
    }

    /// Returns the sampled objects, in the order of their requests.
    #[must_use]
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Returns the reallocations of those objects, in order.
    #[must_use]
    pub fn resizes(&self) -> &[Resize] {
        &self.resizes
    }

    /// Returns the time from the start of the recording to its end or last event, in nanoseconds.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.duration_ns
    }

    /// Returns how many events the recorder dropped, for lack of memory or time. In an incomplete
    /// file the number may be too low.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the resources that the process used.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns whether objects of the file were skipped: see [`decode_first`](Self::decode_first).
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the totals of the file.
    #[must_use]
    pub fn whole(&self) -> Whole {
        self.whole
    }

    /// Returns how the recording ends.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// Returns whether all requests of at least the minimum size were recorded, rather than samples
    /// of them.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.objects.iter().all(|object| object.rate == 0)
    }
}

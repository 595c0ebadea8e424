//! The settings of a driver; see [`Builder`].

use std::io;

use io_uring::IoUring;

use crate::ring::{MOST_REGISTERED_BYTES, Ring};
use crate::sleeper::WakeFd;
use crate::{Arena, Driver, Mode, Refused};

const DEFAULT_ENTRIES: u32 = 64;

/// The settings of a [`Driver`]. They can be given in any order.
///
/// ```
/// use bufcore::MapOptions;
/// use bufuring::{Arena, Driver, Mode};
///
/// let arena = Arena::mapped(1 << 20, MapOptions::new())?;
/// let driver = Driver::builder().arena(&arena).entries(8).build();
/// println!("{}", driver.mode());
///
/// let blocking = Driver::builder().blocking(true).build();
/// assert_eq!(blocking.mode(), Mode::Blocking { refused: None });
/// # Ok::<(), bufcore::RegionError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    arena: Option<Arena>,
    entries: u32,
    register: bool,
    blocking: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self { arena: None, entries: DEFAULT_ENTRIES, register: true, blocking: false }
    }
}

impl Builder {
    /// Returns the defaults: no arena, 64 entries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers the memory of `arena` with the kernel, if it permits that.
    ///
    /// The kernel counts it against the limit of locked memory (`RLIMIT_MEMLOCK`), unless the
    /// process may lock any amount.
    #[must_use]
    pub fn arena(mut self, arena: &Arena) -> Self {
        self.arena = Some(arena.clone());
        self
    }

    /// Sets how many operations can start between two system calls; the default is 64. It is
    /// rounded up to a power of two, within the kernel's range of 1 to 32768.
    ///
    /// More can be in flight. Starting one more than that makes a system call.
    #[must_use]
    pub fn entries(mut self, entries: u32) -> Self {
        self.entries = entries;
        self
    }

    /// Sets whether the arena is registered; the default is true. Without it, each operation pins
    /// the pages of its buffer: for comparison.
    #[must_use]
    pub fn register(mut self, register: bool) -> Self {
        self.register = register;
        self
    }

    /// Sets whether to avoid `io_uring`; the default is false. Each operation is then a blocking
    /// call at its start, as if the system refused `io_uring`.
    #[must_use]
    pub fn blocking(mut self, blocking: bool) -> Self {
        self.blocking = blocking;
        self
    }

    /// Makes the driver. [`Driver::mode`] returns what the system refused.
    ///
    /// Cost: a ring of `entries` (some KiB). Registering an arena faults in all its pages, and pins
    /// them.
    ///
    /// # Panics
    ///
    /// Never.
    #[must_use]
    pub fn build(&self) -> Driver {
        if self.blocking {
            return Driver::over(None, Mode::Blocking { refused: None });
        }
        let wake_fd = || WakeFd::new().map_err(|error| Refused::new("eventfd", &error));
        let (uring, wake_fd) = match self.uring().and_then(|uring| Ok((uring, wake_fd()?))) {
            Ok(made) => made,
            Err(refused) => return Driver::over(None, Mode::Blocking { refused: Some(refused) }),
        };
        let arena = self.arena.as_ref().filter(|_| self.register);
        let (registered, mode) = match arena.map(|arena| register(&uring, arena)) {
            Some(Ok(())) => (arena.cloned(), Mode::Registered),
            Some(Err(refused)) => (None, Mode::Plain { refused: Some(refused) }),
            None => (None, Mode::Plain { refused: None }),
        };
        Driver::over(Some(Box::new(Ring::new(uring, wake_fd, registered))), mode)
    }

    /// A ring of a kernel that loses no completion, and reads where an entry said until it was
    /// taken.
    fn uring(&self) -> Result<IoUring, Refused> {
        let entries = self.entries.max(1);
        // Not mapped in a forked child: two processes would take each other's completions.
        let plain = || IoUring::builder().dontfork().setup_clamp().build(entries);
        // Fewer interrupts, since 5.19.
        let uring = IoUring::builder().dontfork().setup_clamp().setup_coop_taskrun().build(entries);
        let uring = uring.or_else(|_| plain()).map_err(|error| Refused::new("io_uring_setup", &error))?;
        let params = uring.params();
        if params.is_feature_nodrop() && params.is_feature_submit_stable() && params.is_feature_rw_cur_pos() {
            return Ok(uring);
        }
        // Older than 5.6.
        Err(Refused::new("io_uring_setup", &io::Error::from_raw_os_error(libc::ENOSYS)))
    }
}

/// Registers all memory of `arena`, in pieces that the kernel accepts.
impl Driver {
    /// Makes a driver with 64 entries that registers `arena`, if the system allows it.
    ///
    /// # Panics
    ///
    /// Never.
    #[must_use]
    pub fn new(arena: &Arena) -> Self {
        Builder::new().arena(arena).build()
    }

    /// Returns the settings, for further changes.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }
}

fn register(uring: &IoUring, arena: &Arena) -> Result<(), Refused> {
    let (start, len) = (arena.as_ptr().as_ptr(), arena.len());
    let pieces: Vec<_> = (0..len)
        .step_by(MOST_REGISTERED_BYTES)
        .map(|offset| libc::iovec {
            iov_base: start.wrapping_add(offset).cast(),
            iov_len: MOST_REGISTERED_BYTES.min(len - offset),
        })
        .collect();
    // SAFETY: the arena is mapped, and stays so while the ring has it (`Ring`, G1). The kernel
    // writes there only what operations say.
    unsafe { uring.submitter().register_buffers(&pieces) }
        .map_err(|error| Refused::new("io_uring_register", &error))
}

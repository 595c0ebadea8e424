//! Files and sockets that operations share; see [`Descriptor`].

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Shares an open file, pipe or socket among operations.
///
/// Each operation keeps a clone until its completion, so that its descriptor number is not reused.
/// The file is closed with the last clone.
///
/// ```
/// use std::fs::File;
/// use std::net::UdpSocket;
///
/// use bufuring::Descriptor;
///
/// let file = Descriptor::new(File::open("Cargo.toml")?);
/// let socket = Descriptor::new(UdpSocket::bind("127.0.0.1:0")?);
/// # let _ = (file, socket);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Descriptor {
    file: Arc<File>,
}

impl Descriptor {
    /// Takes a file, pipe or socket.
    ///
    /// Cost: one allocation. A clone costs one locked addition.
    #[must_use]
    pub fn new(file: impl Into<OwnedFd>) -> Self {
        Self { file: Arc::new(File::from(file.into())) }
    }

    /// The same, as what has the calls of the standard library.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

//! What the system allows a server: open files, and connections that wait to be accepted.

use std::io;
use std::net::TcpListener;

/// As many connections may wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 4096;

/// Lets this process have as many open files as it may without asking anybody. Returns how many; `None` is any number, or that the
/// system is not asked this way.
#[must_use]
pub fn raise_open_files() -> Option<u64> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // Some systems name a limit that they do not grant; then it stays as it was.
        let _ = setrlimit(Resource::Nofile, limit);
        getrlimit(Resource::Nofile).current
    }
    #[cfg(not(unix))]
    None
}

/// Lets more connections wait than the standard library asks for: a thousand clients may come at once.
///
/// # Errors
///
/// When the system refuses.
pub fn raise_backlog(listener: &TcpListener) -> io::Result<()> {
    #[cfg(unix)]
    rustix::net::listen(listener, BACKLOG)?;
    #[cfg(not(unix))]
    let _ = (listener, BACKLOG);
    Ok(())
}

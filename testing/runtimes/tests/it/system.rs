//! What every runtime is tested with: pools, sockets, files.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::{env, fs, io, process};

use bufworks::any::{AnyBuilder, AnyPool};

/// A pool of each strategy.
pub(crate) fn pools() -> Vec<AnyPool> {
    let build = |name: &&str| AnyBuilder::named(name).unwrap().build().unwrap();
    AnyBuilder::NAMES.iter().map(build).collect()
}

/// Two ends of a connection.
pub(crate) fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Returns the runtime, or says on the terminal that the system has no io_uring for it.
pub(crate) fn or_skip<R>(runtime: io::Result<R>) -> Option<R> {
    if let Err(error) = &runtime {
        eprintln!("skipped: the system refuses io_uring: {error}");
    }
    runtime.ok()
}

/// Bytes that differ from round to round, and from place to place.
pub(crate) fn pattern(len: usize, round: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251 + round * 7) as u8).collect()
}

/// A file that goes with this value.
pub(crate) struct TestFile(pub(crate) PathBuf);

impl TestFile {
    pub(crate) fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("runtimes-{name}-{}", process::id()));
        fs::write(&path, b"").unwrap();
        Self(path)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(&self.0).unwrap()
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

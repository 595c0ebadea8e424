//! `log`: one thread reads a log, another one looks at each line of it.
//!
//! The file is made at run time and stays in the page cache. The thread that looks adds the bytes
//! of the answers up, by the first digit of their status, and the sums are compared with those of
//! the generator. Each contestant brings its own way for lines between two threads.

use core::marker::PhantomData;
use std::fs::{self, File};
use std::io::{self, Seek, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::not_mine;
use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::plan::{Settings, Unsupported};
use crate::harness::serve::Lines;

/// Bytes of the log: so many that starting a thread is a small part of the work.
const LOG_BYTES: usize = 16 << 20;
/// Answers of a status that begins with each digit, and their bytes.
type Sums = [(u64, u64); 10];

pub(super) fn cases() -> Vec<Case> {
    [100, 1 << 10].into_iter().map(|bytes| Case::Log { bytes }).collect()
}

/// A log whose lines have `bytes` bytes on average, between two fifths of that and eight fifths.
/// Returns its sums and the number of its lines too.
fn generate(bytes: usize) -> (Vec<u8>, Sums, u64) {
    let mut random = fastrand::Rng::with_seed(12);
    let (mut log, mut sums, mut lines) = (Vec::with_capacity(LOG_BYTES + 2 * bytes), Sums::default(), 0);
    while log.len() < LOG_BYTES {
        let status = random.choice([200, 200, 200, 204, 301, 404, 503]).unwrap_or(200);
        let sent = random.u32(0..1 << 20);
        let end = log.len() + random.usize(bytes * 2 / 5..bytes * 8 / 5);
        write!(log, "{lines:012} {status} {sent} GET /").expect("a vector takes all");
        while log.len() + 1 < end {
            log.push(random.alphanumeric() as u8);
        }
        log.push(b'\n');
        lines += 1;
        let (count, bytes) = &mut sums[status / 100];
        *count += 1;
        *bytes += u64::from(sent);
    }
    (log, sums, lines)
}

/// Adds one line to the sums. A line that is not of the log's form counts as an answer of status 0.
fn add(sums: &mut Sums, line: &[u8]) {
    let number = |from: usize| {
        let digits = line.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
    };
    let (status, sent) = (number(13), number(17));
    let (count, bytes) = &mut sums[(status / 100) as usize % 10];
    *count += 1;
    *bytes += sent;
}

fn path(bytes: usize) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../target/bench-data/log-{bytes}.txt"))
}

/// Writes the log, under another name until it is whole.
fn write(bytes: usize, log: &[u8]) -> io::Result<File> {
    // Two tests of one program would write to one file.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _writing = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let path = path(bytes);
    if fs::metadata(&path).is_ok_and(|file| file.len() == log.len() as u64) {
        return File::open(path);
    }
    fs::create_dir_all(path.parent().ok_or(io::ErrorKind::NotFound)?)?;
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    fs::write(&partial, log)?;
    fs::rename(partial, &path)?;
    File::open(path)
}

struct Log<L> {
    lines_of: PhantomData<L>,
    settings: Settings,
    file: File,
    sums: Sums,
    lines: u64,
    bytes: u64,
}

pub(crate) fn cell<L: Lines>(case: &Case, settings: Settings) -> Result<Box<dyn Cell>, Unsupported> {
    let &Case::Log { bytes } = case else { return Err(not_mine(case)) };
    let (log, sums, lines) = generate(bytes);
    let file = write(bytes, &log).map_err(|error| format!("cannot make the log: {error}"))?;
    let lines_of = PhantomData::<L>;
    Ok(Box::new(Log { lines_of, settings, file, sums, lines, bytes: log.len() as u64 }))
}

impl<L: Lines> Log<L> {
    fn read(&mut self) -> Result<(), String> {
        let mut sums = Sums::default();
        self.file
            .rewind()
            .and_then(|()| L::each_line(&mut self.file, self.settings, |line| add(&mut sums, line)))
            .map_err(|error| format!("cannot read the log: {error}"))?;
        if sums == self.sums { Ok(()) } else { Err(format!("sums are {sums:?}, not {:?}", self.sums)) }
    }
}

impl<L: Lines> Cell for Log<L> {
    fn check(&mut self) -> Result<(), String> {
        self.read()
    }

    fn run(&mut self, iterations: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..iterations {
            assert_eq!(self.read(), Ok(()), "while being timed");
        }
        start.elapsed()
    }

    fn operations(&self) -> u64 {
        self.lines
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaves the last line out.
    struct OneLess;

    impl Lines for OneLess {
        fn each_line(from: &mut File, _settings: Settings, mut take: impl FnMut(&[u8])) -> io::Result<()> {
            let log = io::read_to_string(from)?;
            let count = log.lines().count();
            log.lines().take(count - 1).for_each(|line| take(line.as_bytes()));
            Ok(())
        }
    }

    #[test]
    fn a_missing_line_is_found() {
        assert!(cell::<OneLess>(&cases()[1], Settings::Planned).unwrap().check().is_err());
    }

    #[test]
    fn a_line_of_another_form_has_status_0() {
        let mut sums = Sums::default();
        add(&mut sums, b"");
        add(&mut sums, b"000000000007 204 19 GET /");
        assert_eq!((sums[0], sums[2]), ((1, 0), (1, 19)));
    }
}

//! Child processes, each of which replays a candidate once, and has a time to do it in.

use std::fmt;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::candidate::Candidate;
use super::replay::Replayed;

/// From one look at a child to the next.
const LOOK: Duration = Duration::from_millis(1);

/// The reason why a candidate was dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// It failed: the child's words, or how it ended.
    Failed(String),
    /// It was not done after this time.
    Slow(Duration),
    /// There was no time left.
    NoTime,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Slow(limit) => write!(f, "took longer than {:.1} s", limit.as_secs_f64()),
            Self::NoTime => f.write_str("had no time left"),
        }
    }
}

/// Runs children until a time.
pub(crate) struct Children {
    pub(crate) program: PathBuf,
    /// What they read: the schedule, and one of a single worker where it has several.
    pub(crate) schedule: Vec<u8>,
    pub(crate) alone: Option<Vec<u8>>,
    pub(crate) deadline: Instant,
    /// How many times as much memory all requests take as those that are replayed.
    pub(crate) times_bytes: f64,
}

impl Children {
    /// Returns the time that is left.
    pub(crate) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Replays a candidate in a child that has at most this time.
    pub(crate) fn replay(&self, candidate: &Candidate, limit: Duration) -> Result<Replayed, Dropped> {
        let left = self.left();
        if left.is_zero() {
            return Err(Dropped::NoTime);
        }
        let mut command = Command::new(&self.program);
        command.arg("child").arg(candidate.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| Dropped::Failed(error.to_string()))?;
        match self.talk(child, limit.min(left)) {
            Err(Dropped::Slow(_)) if left < limit => Err(Dropped::NoTime),
            Err(why) => Err(why),
            Ok(found) => Ok(Replayed { bytes: (found.bytes as f64 * self.times_bytes) as u64, ..found }),
        }
    }

    /// Sends the schedule, and waits for the answer.
    fn talk(&self, mut child: Child, limit: Duration) -> Result<Replayed, Dropped> {
        let end = Instant::now() + limit;
        let input = child.stdin.take();
        thread::scope(|scope| {
            // A child that has ended reads nothing, and says so by its status.
            scope.spawn(move || input.map(|mut input| input.write_all(&self.schedule)));
            loop {
                match child.try_wait() {
                    Ok(None) if Instant::now() < end => thread::sleep(LOOK),
                    Ok(None) => {
                        // The thread that writes continues when the pipe has no reader any more.
                        let _ = child.kill();
                        let _ = child.wait();
                        return Err(Dropped::Slow(limit));
                    }
                    Ok(Some(status)) if status.success() => break,
                    Ok(Some(status)) => {
                        let said = read(child.stderr.take());
                        let said = said.lines().next().unwrap_or_default();
                        return Err(Dropped::Failed(format!("{status} {said}").trim_end().to_owned()));
                    }
                    Err(error) => return Err(Dropped::Failed(error.to_string())),
                }
            }
            let said = read(child.stdout.take());
            serde_json::from_str(&said).map_err(|error| Dropped::Failed(format!("it said `{said}`: {error}")))
        })
    }
}

/// Reads what a child that has ended said. It is less than a pipe holds.
fn read(from: Option<impl Read>) -> String {
    let mut said = Vec::new();
    // What cannot be read is not there.
    let _ = from.map(|from| from.take(1 << 16).read_to_end(&mut said));
    String::from_utf8_lossy(&said).into_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A program that is no `bufadvise`, and what becomes of a candidate that is replayed by it.
    fn replay(name: &str, program: &str, limit: Duration) -> Result<Replayed, Dropped> {
        let path = std::env::temp_dir().join(format!("bufadvise-{}-{name}", std::process::id()));
        // By another one: a child of another test could have the file open for writing, and what
        // is open so cannot be run.
        let write = "printf '#!/bin/sh\n%s\n' \"$1\" > \"$0\" && chmod +x \"$0\"";
        assert!(Command::new("sh").args(["-c", write]).arg(&path).arg(program).status().unwrap().success());
        let schedule = vec![0; 1 << 20];
        let deadline = Instant::now() + Duration::from_secs(60);
        let children = Children { program: path.clone(), schedule, alone: None, deadline, times_bytes: 1.5 };
        let replayed = children.replay(&Candidate::Vec, limit);
        std::fs::remove_file(path).unwrap();
        replayed
    }

    #[test]
    fn a_child_that_fails_is_dropped_and_says_why() {
        let long = Duration::from_secs(60);
        let failed = replay("fails", "echo no memory >&2; exit 3", long).unwrap_err();
        assert_eq!(failed, Dropped::Failed("exit status: 3 no memory".into()));
        let said = r#"{"nanos":1,"faults":2,"refused":0,"wrong":0,"bytes":10}"#;
        let replayed = replay("all", &format!("cat > /dev/null; echo '{said}'"), long).unwrap();
        assert_eq!((replayed.nanos, replayed.bytes), (1, 15), "the memory is that of all requests");
        let killed = replay("killed", "kill -9 $$", long).unwrap_err().to_string();
        assert!(killed.contains("signal: 9"), "{killed}");
        assert!(
            matches!(replay("says", "echo hello", long), Err(Dropped::Failed(why)) if why.contains("hello"))
        );
    }

    #[test]
    fn a_child_that_is_slow_is_ended() {
        let started = Instant::now();
        let limit = Duration::from_millis(200);
        assert_eq!(replay("slow", "exec sleep 600", limit), Err(Dropped::Slow(limit)));
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        assert_eq!(replay("never", "exec sleep 600", Duration::ZERO), Err(Dropped::Slow(Duration::ZERO)));
    }
}

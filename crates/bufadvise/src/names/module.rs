//! Whether the file of some code is still that which ran. Addresses in another one have other
//! names.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use buftrace::{Module, Profile};
use object::read::ReadCache;
use object::{Object, ObjectSection};

/// What the system puts behind the path of a file that was deleted, or replaced, while it ran.
const DELETED: &str = " (deleted)";

/// Returns the path of the file that has the names of `module`, or why none is to be read.
pub(super) fn check(module: &Module, started_at: u64) -> Result<&Path, String> {
    let path = Path::new(module.path.strip_suffix(DELETED).unwrap_or(&module.path));
    if !path.is_absolute() {
        return Err("it is no file".into());
    }
    let file = File::open(path).map_err(|error| format!("it cannot be opened: {error}"))?;
    let file = ReadCache::new(file);
    let file = object::File::parse(&file).map_err(|error| format!("it cannot be read: {error}"))?;
    let found = file.build_id().ok().flatten().map(digits).unwrap_or_default();
    if found != module.build_id {
        let or_none = |id: &str| if id.is_empty() { "none".to_owned() } else { id.to_owned() };
        let (then, now) = (or_none(&module.build_id), or_none(&found));
        return Err(format!("it was changed since: its build id was {then}, and is {now}"));
    }
    if found.is_empty() {
        is_older(path, started_at)?;
    }
    Ok(path)
}

/// Returns whether the Rust compiler has made the program that was recorded.
pub(crate) fn is_rust(heap: &Profile) -> bool {
    let comment = |module: &Module| {
        let path = check(module, heap.info().started_at).ok()?;
        let file = ReadCache::new(File::open(path).ok()?);
        let file = object::File::parse(&file).ok()?;
        let comment = file.section_by_name(".comment")?.data().ok()?;
        Some(comment.windows(5).any(|word| word == b"rustc"))
    };
    let own = heap.modules().iter().find(|module| module.path == heap.info().program);
    own.and_then(comment) == Some(true)
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns whether a file without a build id was written before the recording began.
fn is_older(path: &Path, started_at: u64) -> Result<(), String> {
    let Ok(written) = fs::metadata(path).and_then(|file| file.modified()) else { return Ok(()) };
    // The recording knows the second only.
    if written > UNIX_EPOCH + Duration::from_secs(started_at.saturating_add(1)) {
        return Err(
            "it is newer than the recording, and has no build id that would say whether it is the same"
                .into(),
        );
    }
    Ok(())
}

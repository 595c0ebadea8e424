//! Control groups: where those of this process are, and what they say of memory.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::MemoryUse;

/// A limit of version 1 that is none: it is the largest number of pages there, in bytes.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// A control group of version 1 or 2: the paths of its files. They are made once, because a look
/// is most needed when there is no memory for a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    used: PathBuf,
    limits: Vec<PathBuf>,
    stat: PathBuf,
    inactive: &'static str,
    stalls: Option<PathBuf>,
}

/// What a version calls its files.
#[derive(Debug, PartialEq, Eq)]
struct Files {
    used: &'static str,
    limits: &'static [&'static str],
    /// The line of `memory.stat` with the bytes of files that were not read for long.
    inactive: &'static str,
    stalls: Option<&'static str>,
}

static VERSION_1: Files = Files {
    used: "memory.usage_in_bytes",
    limits: &["memory.limit_in_bytes"],
    inactive: "total_inactive_file ",
    stalls: None,
};

static VERSION_2: Files = Files {
    used: "memory.current",
    limits: &["memory.high", "memory.max"],
    inactive: "inactive_file ",
    stalls: Some("memory.pressure"),
};

/// Finds the groups of this process that may have limits, each with those that contain it.
#[inline]
pub(super) fn groups(root: &Path) -> Vec<Group> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let (own, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
    let second =
        found(root, &own, &mounts, &VERSION_2, |number, _| number == "0", |kind, _| kind == "cgroup2");
    let has_memory = |list: &str| list.split(',').any(|name| name == "memory");
    let first = found(
        root,
        &own,
        &mounts,
        &VERSION_1,
        |_, controllers| has_memory(controllers),
        |kind, options| kind == "cgroup" && has_memory(options),
    );
    second.into_iter().chain(first).collect()
}

/// Finds the groups of one version. `is_own` tells this process's by the number and controllers of
/// its hierarchy. `is_mount` tells the mount above it by type and options.
fn found(
    root: &Path,
    own: &str,
    mounts: &str,
    files: &'static Files,
    is_own: impl Fn(&str, &str) -> bool,
    is_mount: impl Fn(&str, &str) -> bool,
) -> Vec<Group> {
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers) = (fields.next()?, fields.next()?);
        is_own(number, controllers).then_some(fields.next()?)
    });
    let mount = mounts.lines().filter_map(Mount::of).find(|mount| is_mount(mount.kind, mount.options));
    let (Some(path), Some(mount)) = (path, mount) else { return Vec::new() };
    let top = root.join(relative(Path::new(&mount.point)));
    let below = below(Path::new(path), Path::new(&mount.root));
    let paths = below.ancestors().map(|below| top.join(below));
    paths.map(|path| Group::new(&path, files)).collect()
}

/// Returns the way from a mount to the group `path`, if what is mounted is `root`. A group that the
/// mount does not show is behind it: then the mount is all that can be seen.
#[inline]
fn below(path: &Path, root: &Path) -> PathBuf {
    let below = path.strip_prefix(root).unwrap_or(Path::new(""));
    let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    if is_plain { below.to_owned() } else { PathBuf::new() }
}

/// Returns a path without its root.
#[inline]
fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// A line of `mountinfo`.
struct Mount<'a> {
    /// What of the file system is mounted.
    root: String,
    point: String,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    #[inline]
    fn of(line: &'a str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        let mut system = system.split(' ');
        let (kind, options) = (system.next()?, system.nth(1)?);
        Some(Self { root: unescaped(root), point: unescaped(point), kind, options })
    }
}

/// Decodes a path of `mountinfo`, in which blanks and backslashes are octal numbers.
#[inline]
fn unescaped(path: &str) -> String {
    let mut parts = path.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let byte = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match byte.filter(u8::is_ascii) {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

impl Group {
    #[inline]
    fn new(path: &Path, files: &Files) -> Self {
        Self {
            used: path.join(files.used),
            limits: files.limits.iter().map(|limit| path.join(limit)).collect(),
            stat: path.join("memory.stat"),
            inactive: files.inactive,
            stalls: files.stalls.map(|stalls| path.join(stalls)),
        }
    }

    /// Returns the file that says how much time was lost.
    #[inline]
    pub(super) fn stalls(&self) -> Option<PathBuf> {
        self.stalls.clone()
    }

    /// Reads what the group uses and may use. Returns `None` for a group without a limit, and for
    /// files that there is no memory to read.
    #[inline]
    pub(super) fn memory(&self) -> Option<MemoryUse> {
        let number = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        let limits = self.limits.iter().filter_map(|limit| number(limit));
        let limit_bytes = limits.min().filter(|&limit| limit < NO_LIMIT_BYTES)?;
        let used = number(&self.used)?;
        let stat = fs::read_to_string(&self.stat).unwrap_or_default();
        let inactive = stat.lines().find_map(|line| line.strip_prefix(self.inactive)?.trim().parse().ok());
        Some(MemoryUse { used_bytes: used.saturating_sub(inactive.unwrap_or(0)), limit_bytes })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn ways() {
        let way = |path: &str, root: &str| below(Path::new(path), Path::new(root));
        assert_eq!(way("/a/b", "/"), Path::new("a/b"));
        assert_eq!(way("/", "/"), Path::new(""));
        assert_eq!(way("/a/b/c", "/a/b"), Path::new("c"));
        assert_eq!(way("/ab", "/a"), Path::new(""), "another group");
        assert_eq!(way("/../other", "/"), Path::new(""), "behind the mount");
    }

    #[test]
    fn mounts() {
        let line =
            r"41 31 0:38 /a\040b /sys/fs/\134cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate";
        let mount = Mount::of(line).expect("it is a mount");
        assert_eq!((&*mount.root, &*mount.point), ("/a b", r"/sys/fs/\cgroup"));
        assert_eq!((mount.kind, mount.options), ("cgroup2", "rw,nsdelegate"));
        for wrong in ["", " - ", "1 2 3 / /sys - cgroup2", "1 2 3 - cgroup2 cgroup2 rw"] {
            assert!(Mount::of(wrong).is_none(), "{wrong}");
        }
        assert_eq!(unescaped(r"\400\9\"), r"\400\9\");
    }
}

//! Programs that cannot be recorded: they are told beforehand, and are not started.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSymbol};

/// Libraries that have to come before any other.
const SANITIZERS: [&str; 4] = ["libasan.so", "libhwasan.so", "liblsan.so", "libtsan.so"];

/// Allocators that are recorded in place of the C library's, and are not replayed.
const ALLOCATORS: [&str; 3] = ["libjemalloc", "libtcmalloc", "libmimalloc"];
/// The system follows so many lines `#!`, one to the next.
const MOST_SCRIPTS: usize = 5;

/// Looks whether a program can be recorded. What is not found, or not understood, is for the
/// system to refuse. Returns the allocator that the program brings along.
///
/// # Errors
///
/// When it cannot, with the reason.
pub(super) fn check(program: &OsStr) -> Result<Option<&'static str>> {
    let preloaded = env::var_os("LD_PRELOAD").unwrap_or_default();
    let is_preloaded = |name: &&str| preloaded.to_string_lossy().contains(name);
    let path = find(program);
    match path.as_deref().and_then(look) {
        Some(Err(why)) => bail!("{} cannot be recorded: {why}", path.unwrap_or_default().display()),
        Some(Ok(name)) => Ok(Some(name)),
        None => Ok(ALLOCATORS.into_iter().find(is_preloaded)),
    }
}

/// Returns the file of a program, as `execvp` finds it.
fn find(program: &OsStr) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return Some(program.into());
    }
    let paths = env::var_os("PATH")?;
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(&paths).map(|folder| folder.join(program)).find(is_program)
}

/// Returns the allocator that a program needs, or the reason why it cannot be recorded.
fn look(program: &Path) -> Option<Result<&'static str, String>> {
    let mut path = program.to_owned();
    for _ in 0..=MOST_SCRIPTS {
        // A pipe would be waited for.
        let found = fs::metadata(&path).ok().filter(Metadata::is_file)?;
        if found.permissions().mode() & 0o6000 != 0 {
            return Some(Err("it changes its user, and the system starts it without other libraries".into()));
        }
        let mut file = File::open(&path).ok()?;
        let mut start = [0; 256];
        let read = file.read(&mut start).ok()?;
        let Some(line) = start[..read].strip_prefix(b"#!") else { return look_at_code(file) };
        let line = String::from_utf8_lossy(line.split(|byte| *byte == b'\n').next()?).into_owned();
        let mut words = line.split_whitespace();
        path = words.next()?.into();
        if path.ends_with("env") {
            let program = words.find(|word| !word.starts_with('-')).unwrap_or("the program");
            return Some(Err(format!(
                "it is a script that `env` starts. Run `{program}`, and the script behind it"
            )));
        }
    }
    Some(Err("it is a script, whose interpreter is a script, and so on".into()))
}

fn look_at_code(file: File) -> Option<Result<&'static str, String>> {
    let cache = ReadCache::new(file);
    let elf = object::File::parse(&cache).ok()?;
    if elf.is_64() != cfg!(target_pointer_width = "64") {
        return Some(Err("it is of another architecture".into()));
    }
    elf.section_by_name(".text")?;
    if elf.section_by_name(".interp").is_none() {
        return Some(Err("it is linked statically".into()));
    }
    let names = elf.section_by_name(".dynstr")?.data().ok()?;
    let needs = |name: &&str| names.windows(name.len()).any(|part| part == name.as_bytes());
    if let Some(name) = SANITIZERS.iter().find(|name| needs(name)) {
        return Some(Err(format!("it is built with a sanitizer ({name})")));
    }
    let is_malloc =
        |symbol: object::Symbol<'_, '_, _>| symbol.is_definition() && symbol.name() == Ok("malloc");
    if elf.dynamic_symbols().any(is_malloc) {
        return Some(Err("it has a `malloc` of its own".into()));
    }
    ALLOCATORS.into_iter().find(needs).map(Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says why a script with this first line, and this mode, cannot be recorded.
    fn script(name: &str, text: &str, mode: u32) -> Option<String> {
        let path = env::temp_dir().join(format!("bufadvise-{}-{name}", std::process::id()));
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        let found = look(&path);
        fs::remove_file(path).expect("it was there");
        found?.err()
    }

    #[test]
    fn programs_are_found_and_told() {
        let shell = find(OsStr::new("sh")).expect("a shell");
        assert_eq!(look(&shell), None);
        assert_eq!(find(OsStr::new("./no/such")), Some("./no/such".into()));
        assert!(find(OsStr::new("no-such-program-at-all")).is_none());
        assert_eq!(script("plain", "#!/bin/sh\nexit\n", 0o755), None);
        assert_eq!(script("text", "no program", 0o644), None);
        let env = script("env", "#!/usr/bin/env -S node --x\n", 0o755).expect("a reason");
        assert!(env.contains("Run `node`"), "{env}");
        assert!(script("user", "#!/bin/sh\n", 0o4755).is_some_and(|why| why.contains("changes its user")));
    }
}

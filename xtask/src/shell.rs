//! Running other programs: each is echoed, and a failure names the command.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};

/// A command as one would type it: `{name}` is one word and `{names...}` are several, whatever is in
/// them.
macro_rules! command {
    ($line:literal) => {{
        let shell = xshell::Shell::new()?;
        std::process::Command::from(xshell::cmd!(shell, $line))
    }};
}
pub(crate) use command;

/// Makes the workspace's root the current folder.
pub(crate) fn enter_root() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has a parent folder")?;
    env::set_current_dir(root).with_context(|| format!("cannot enter {}", root.display()))
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", show(command));
    let status = command.status().with_context(|| format!("cannot start `{}`", show(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", show(command));
    }
    Ok(())
}

/// Runs a command to its end and returns what it printed; its errors and its progress are seen meanwhile.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    eprintln!("$ {}", show(command));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn();
    let child = child.with_context(|| format!("cannot start `{}`", show(command)))?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("`{}` failed: {}", show(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` printed no UTF-8", show(command)))
}

/// Runs tests to their end, and returns what they printed as well as passing it on. The error of tests that fail says which, and
/// what they said: at the end of a long job that is what one looks for.
pub(crate) fn run_tests(command: &mut Command) -> Result<String> {
    eprintln!("$ {}", show(command));
    let started = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.with_context(|| format!("cannot start `{}`", show(command)))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let text = Mutex::new(String::new());
    thread::scope(|scope| {
        let errors = scope.spawn(|| pass_on(stderr, &text, |line| eprintln!("{line}")));
        pass_on(stdout, &text, |line| println!("{line}"))?;
        errors.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
    .with_context(|| format!("cannot read from `{}`", show(command)))?;
    let status = child.wait()?;
    let text = text.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !status.success() {
        bail!("`{}` failed: {status}\n{}", show(command), failures(&text));
    }
    Ok(text)
}

/// Reads lines to the end of `from`; each goes to `to` and into `text`.
fn pass_on(from: Option<impl Read>, text: &Mutex<String>, to: impl Fn(&str)) -> io::Result<()> {
    for line in from.map(|from| BufReader::new(from).split(b'\n')).into_iter().flatten() {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        to(&line);
        let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(&line);
        text.push('\n');
    }
    Ok(())
}

/// What the output of `cargo test` says of tests that failed and programs that ended badly; its last lines if that is nothing.
pub(crate) fn failures(text: &str) -> String {
    const MOST_LINES: usize = 200;
    let mut inside = false;
    let told = |line: &&str| {
        inside |= *line == "failures:";
        let keep =
            inside || ["error", "Caused by", "  process didn't"].iter().any(|start| line.starts_with(start));
        // Not at the result: a test that runs in a process of its own prints that one's first.
        inside &= !["Running ", "Doc-tests "].iter().any(|start| line.trim_start().starts_with(start));
        keep
    };
    let mut lines: Vec<&str> = text.lines().filter(told).collect();
    if lines.is_empty() {
        lines = text.lines().collect();
        lines.drain(..lines.len().saturating_sub(MOST_LINES));
    }
    lines.truncate(MOST_LINES);
    lines.join("\n")
}

/// The files of a checkout, without what git is told to ignore.
pub(crate) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut command = command!("git ls-files -z --cached --others --exclude-standard --exclude=/shared");
    let list = output(command.current_dir(root))?;
    // It lists files that were removed a moment ago, too.
    Ok(list.split('\0').map(PathBuf::from).filter(|file| root.join(file).is_file()).collect())
}

/// Whether a program can be started and says that all is well. Not echoed: it only asks.
pub(crate) fn works(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// The toolchain's `cargo`, as the one that runs us.
pub(crate) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Where cargo puts what it builds.
pub(crate) fn target_folder() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}

/// The `cargo` of another installed toolchain; `None` where there is no such toolchain. Nothing is fetched.
pub(crate) fn cargo_of(toolchain: &str) -> Option<Command> {
    with_toolchain(toolchain, "cargo")
}

/// A program that finds another installed toolchain's programs first; `None` where there is no such toolchain.
pub(crate) fn with_toolchain(toolchain: &str, program: impl AsRef<OsStr>) -> Option<Command> {
    let list = Command::new("rustup").args(["toolchain", "list"]).output().ok()?;
    let list = String::from_utf8(list.stdout).ok()?;
    let name = list.split_whitespace().find(|name| names_toolchain(name, toolchain))?;
    let mut command = Command::new("rustup");
    // The variables that the running cargo sets name its own toolchain.
    for stale in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH"] {
        command.env_remove(stale);
    }
    command.args(["run", name]).arg(program);
    Some(command)
}

/// Whether `listed`, as `nightly-x86_64-unknown-linux-gnu`, is a toolchain of channel `wanted`, as `nightly` or `1.88`.
fn names_toolchain(listed: &str, wanted: &str) -> bool {
    listed.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
}

/// The machine's target triple, as `x86_64-unknown-linux-gnu`.
pub(crate) fn host_triple() -> Result<String> {
    let text = output(&mut command!("rustc -vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

/// The command as one would type it.
pub(crate) fn show(command: &Command) -> String {
    let vars = command.get_envs().filter_map(|(key, value)| {
        Some(format!("{}={:?} ", key.to_string_lossy(), value?.to_string_lossy()))
    });
    let words = iter::once(command.get_program()).chain(command.get_args());
    vars.collect::<String>() + &words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{failures, names_toolchain};

    #[test]
    fn toolchains_are_told_apart() {
        assert!(names_toolchain("nightly-x86_64-unknown-linux-gnu", "nightly"));
        assert!(names_toolchain("1.88.0-x86_64-unknown-linux-gnu", "1.88"));
        assert!(!names_toolchain("1.880.0-x86_64-unknown-linux-gnu", "1.88"));
        assert!(!names_toolchain("stable-x86_64-unknown-linux-gnu", "nightly"));
    }

    #[test]
    fn the_failures_are_found_in_a_long_output() {
        let text = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nleft: 1\n\n\
                    test result: FAILED. 1 passed\n     Running c\ntest c ... ok\nerror: 1 target failed:\n    `-p x`\n";
        let told = failures(text);
        assert!(told.contains("left: 1") && told.contains("error: 1 target"), "{told}");
        assert!(!told.contains("test a") && !told.contains("test c"), "{told}");
        assert_eq!(failures("cut short"), "cut short");
    }
}

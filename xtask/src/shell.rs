//! Running other programs: each is echoed, and a failure names the command.

use std::env;
use std::io::{BufRead, BufReader};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

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

/// Runs a command to its end and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    eprintln!("$ {}", show(command));
    let output = command.output().with_context(|| format!("cannot start `{}`", show(command)))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed: {}\n{errors}", show(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` printed no UTF-8", show(command)))
}

/// Runs a command to its end, and returns what it printed as well as passing it on.
pub(crate) fn run_and_read(command: &mut Command) -> Result<String> {
    eprintln!("$ {}", show(command));
    let started = command.stdout(Stdio::piped()).spawn();
    let mut child = started.with_context(|| format!("cannot start `{}`", show(command)))?;
    let mut text = String::new();
    if let Some(printed) = child.stdout.take() {
        for line in BufReader::new(printed).split(b'\n') {
            let line = line.with_context(|| format!("cannot read from `{}`", show(command)))?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            text += &line;
            text.push('\n');
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{}` failed: {status}", show(command));
    }
    Ok(text)
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
    let list = Command::new("rustup").args(["toolchain", "list"]).output().ok()?;
    let list = String::from_utf8(list.stdout).ok()?;
    let name = list.split_whitespace().find(|name| names_toolchain(name, toolchain))?;
    let mut command = Command::new("rustup");
    // The variables that the running cargo sets name its own toolchain.
    for stale in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH"] {
        command.env_remove(stale);
    }
    command.args(["run", name, "cargo"]);
    Some(command)
}

/// Whether `listed`, as `nightly-x86_64-unknown-linux-gnu`, is a toolchain of channel `wanted`, as `nightly` or `1.88`.
fn names_toolchain(listed: &str, wanted: &str) -> bool {
    listed.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
}

/// The machine's target triple, as `x86_64-unknown-linux-gnu`.
pub(crate) fn host_triple() -> Result<String> {
    let text = output(Command::new("rustc").arg("-vV"))?;
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
    use super::names_toolchain;

    #[test]
    fn toolchains_are_told_apart() {
        assert!(names_toolchain("nightly-x86_64-unknown-linux-gnu", "nightly"));
        assert!(names_toolchain("1.88.0-x86_64-unknown-linux-gnu", "1.88"));
        assert!(!names_toolchain("1.880.0-x86_64-unknown-linux-gnu", "1.88"));
        assert!(!names_toolchain("stable-x86_64-unknown-linux-gnu", "nightly"));
    }
}

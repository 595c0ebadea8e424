//! Jobs in a process of their own beside those that run here. What they print is kept until they end, so that it is not mixed up.

use std::env;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command};

use anyhow::{Context, Result, bail};

use crate::shell;
use crate::steps::Outcome;

/// Runs `cargo xtask ci` with some jobs. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Beside {
    child: Child,
    log: PathBuf,
}

impl Beside {
    /// Starts the jobs of these names.
    pub(crate) fn start(jobs: &[String]) -> Result<Self> {
        let folder = shell::target_folder();
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let log = folder.join("ci-beside.log");
        let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(env::current_exe().context("a program has a path")?);
        command.arg("ci").args(jobs).stdout(out.try_clone()?).stderr(out);
        eprintln!("$ {} > {} &", shell::show(&command), log.display());
        let child = command.spawn().with_context(|| format!("cannot start `{}`", shell::show(&command)))?;
        Ok(Self { child, log })
    }

    /// Waits for the jobs, and prints what they printed.
    pub(crate) fn finish(mut self) -> Result<Outcome> {
        let status = self.child.wait()?;
        let text = fs::read(&self.log).with_context(|| format!("cannot read {}", self.log.display()))?;
        let text = String::from_utf8_lossy(&text);
        eprintln!("{}", text.trim_end());
        if !status.success() {
            bail!("{status}\n{}", verdict(&text));
        }
        Ok(Outcome::Passed)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // They may have ended already; then there is nothing to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What the jobs' last table and its errors say.
fn verdict(text: &str) -> &str {
    text.rfind("\nci  ").map_or(text, |at| &text[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn the_verdict_is_the_last_table() {
        let text = "==> ci 1/1: loom\nnoise\n\nci      seconds  result\nloom        1.0  FAILED: x\nerror: ci: failed: loom\n";
        assert!(verdict(text).starts_with("ci      seconds") && verdict(text).ends_with("loom\n"));
        assert_eq!(verdict("cut short"), "cut short");
    }
}

//! The rules for known defects: each patch fits the sources as they are, and the tests that its header names are there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Finding;
use crate::mutants::{self, Mutant};
use crate::packages::Package;

/// Checks all patches against the sources and the tests of `packages`.
pub(super) fn check_all(packages: &[Package]) -> Result<(Vec<(PathBuf, Finding)>, usize)> {
    let names = mutants::names()?;
    let mut found = Vec::new();
    for name in &names {
        let path = mutants::path(name);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let findings = check(name, &text, read, packages);
        found.extend(findings.into_iter().map(|finding| (path.clone(), finding)));
    }
    Ok((found, names.len()))
}

/// Checks the patch `name`, which reads `text`.
fn check(
    name: &str,
    text: &str,
    read: impl Fn(&Path) -> Result<String>,
    packages: &[Package],
) -> Vec<Finding> {
    let mutant = match Mutant::parse(name, text) {
        Ok(mutant) => mutant,
        Err(error) => return vec![Finding::at(0, format!("{error:#}"))],
    };
    let mut messages = mutant.check(packages);
    if let Err(error) = mutant.apply(read) {
        messages.push(format!("does not apply: {error:#}"));
    }
    messages.into_iter().map(|message| Finding::at(0, message)).collect()
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::Target;

    const FINE: &str = "what: it counts wrong\n\ntrial: T1\ntarget: bufslot/it\ntest: main::counts\ntest: alone\n\n\
                        --- a/crates/bufslot/src/a.rs\n+++ b/crates/bufslot/src/a.rs\n\
                        @@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";

    fn messages(text: &str) -> Vec<String> {
        let target = Target { name: "it".to_owned(), kind: "test".to_owned(), required_features: Vec::new() };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crates").join("bufslot");
        let package =
            Package { name: "bufslot".to_owned(), folder, targets: vec![target], ..Package::default() };
        let read = |_: &Path| Ok("one\ntwo\nthree\n".to_owned());
        let findings = check("bufslot/count", text, read, &[package]);
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn what_is_in_order_is_not_named() {
        assert_eq!(messages(FINE), [""; 0]);
    }

    #[test]
    fn each_fault_is_named() {
        let says = |from: &str, to: &str, what: &str| {
            let messages = messages(&FINE.replace(from, to));
            assert!(messages.len() == 1 && messages[0].contains(what), "{messages:?}");
        };
        says("-two", "-zwei", "does not apply: not as crates/bufslot/src/a.rs reads now");
        says("crates/bufslot", "crates/bufring", "does not apply: crates/bufring/src/a.rs is not of bufslot");
        says("what: it counts wrong\n", "", "no `what`");
        says("bufslot/it", "bufslit/it", "no package bufslit");
        says("bufslot/it", "bufslot/at", "no test target at");
        says("main::counts", "absent::counts", "no module absent");
    }
}

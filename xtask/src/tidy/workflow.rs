//! The hosted workflow: it has every job that `cargo xtask ci` has, and takes from others only what it names by commit.

use super::Finding;

/// Where it is.
pub(super) const FILE: &str = ".github/workflows/ci.yml";

/// Checks the workflow `text` against the names of the jobs.
pub(super) fn check(text: &str, jobs: &[String]) -> Vec<Finding> {
    let mut found = Vec::new();
    for job in jobs {
        let in_matrix = text.lines().any(|line| line.trim() == format!("- {job}"));
        let by_itself = text.lines().any(|line| line.trim() == format!("run: cargo xtask ci {job}"));
        if !in_matrix && !by_itself {
            found.push(Finding::at(0, format!("no step runs the job {job}")));
        }
    }
    let mut lines = text.lines().enumerate().skip_while(|(_, line)| line.trim() != "job:").skip(1);
    while let Some((at, name)) =
        lines.next().and_then(|(at, line)| Some((at, line.trim().strip_prefix("- ")?)))
    {
        if !jobs.iter().any(|job| job == name) {
            found.push(Finding::at(at + 1, format!("`cargo xtask ci` has no job {name}")));
        }
    }
    for (at, line) in text.lines().enumerate() {
        if let Some((_, action)) = line.split_once("uses: ")
            && !is_pinned(action)
        {
            found.push(Finding::at(
                at + 1,
                format!("{action} is not named by a commit, with its version behind it"),
            ));
        }
    }
    found
}

/// Whether `action` reads `owner/name@commit # version`.
fn is_pinned(action: &str) -> bool {
    const COMMIT_DIGITS: usize = 40;
    let Some((name, version)) = action.split_once(" # v") else { return false };
    let commit = name.split_once('@').map_or("", |(_, commit)| commit);
    let is_commit = commit.len() == COMMIT_DIGITS && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit && version.starts_with(|digit: char| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: &str = "matrix:\n  job:\n    - fmt\n    - tidy\n  include:\n    - { job: tidy }\n\
                        - uses: some/action@0123456789abcdef0123456789abcdef01234567 # v4.2\n\
                        run: cargo xtask ci test\n";

    fn messages(text: &str) -> Vec<String> {
        let jobs = ["fmt", "tidy", "test"].map(str::to_owned);
        check(text, &jobs).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn every_job_is_there() {
        assert_eq!(messages(FINE), [""; 0]);
        assert_eq!(messages(&FINE.replace("    - tidy\n", "")), ["no step runs the job tidy"]);
        assert_eq!(messages(&FINE.replace("ci test", "ci")), ["no step runs the job test"]);
        let more = FINE.replace("    - tidy\n", "    - tidy\n    - more\n");
        assert_eq!(messages(&more), ["`cargo xtask ci` has no job more"]);
    }

    #[test]
    fn actions_are_named_by_their_commit() {
        for bad in ["some/action@v4", "some/action@0123456789abcdef0123456789abcdef01234567"] {
            let text = format!("{FINE}- uses: {bad}\n");
            assert_eq!(
                messages(&text),
                [format!("{bad} is not named by a commit, with its version behind it")]
            );
        }
    }
}

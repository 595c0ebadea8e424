//! The checked-in lines about mutants that no test of this kind can find.
//!
//! ```text
//! # A comment.
//! bufslot release: state.store: Release to Relaxed
//!     equivalent: the reason, in as many lines as it takes.
//! ```
//!
//! A verdict is `equivalent`, of a mutant that no execution tells from the original, or `elsewhere`, of one that needs another proof than
//! these models, which the reason names.

/// Where they are.
pub(crate) const FILE: &str = "mutants/orderings.txt";

/// What is said about one mutant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Of its name, from 1.
    pub(super) number: usize,
    pub(super) package: String,
    pub(super) name: String,
    pub(super) verdict: Verdict,
}

/// Why a mutant is not tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Equivalent,
    Elsewhere,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Equivalent => "equivalent",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// Reads the lines of `text`, and says what is wrong with others.
pub(super) fn parse(text: &str) -> (Vec<Line>, Vec<(usize, String)>) {
    let (mut lines, mut wrong) = (Vec::new(), Vec::new());
    // The name that has no verdict yet.
    let mut open: Option<(usize, &str, &str)> = None;
    let mut has_reason = true;
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with(' ') {
            if let Some((number, package, name)) = open.take() {
                let verdicts = [Verdict::Equivalent, Verdict::Elsewhere];
                let split = line.trim().split_once(": ");
                let verdict = split.and_then(|(word, _)| verdicts.into_iter().find(|one| one.word() == word));
                match verdict {
                    Some(verdict) => {
                        let (package, name) = (package.to_owned(), name.to_owned());
                        lines.push(Line { number, package, name, verdict });
                    }
                    None => wrong
                        .push((number + 1, "no `equivalent: ` or `elsewhere: ` with a reason".to_owned())),
                }
                has_reason = true;
            }
            continue;
        }
        if !has_reason {
            wrong.push((number, "the name before this one has no reason".to_owned()));
        }
        match line.split_once(' ') {
            Some((package, name)) => open = Some((number, package, name)),
            None => wrong.push((number, "no package and name".to_owned())),
        }
        has_reason = false;
    }
    if !has_reason {
        wrong.push((text.lines().count(), "the last name has no reason".to_owned()));
    }
    (lines, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read() {
        let text = "# about\n\nbufslot a: b.load: Acquire to Relaxed\n    equivalent: it is\n    so.\n\
                    bufring c: d: e\n    elsewhere: there\n";
        let (lines, wrong) = parse(text);
        assert_eq!(wrong, []);
        let line = |number, package: &str, name: &str, verdict| {
            let (package, name) = (package.to_owned(), name.to_owned());
            Line { number, package, name, verdict }
        };
        assert_eq!(
            lines,
            [
                line(3, "bufslot", "a: b.load: Acquire to Relaxed", Verdict::Equivalent),
                line(6, "bufring", "c: d: e", Verdict::Elsewhere)
            ]
        );
    }

    #[test]
    fn names_without_reasons_are_refused() {
        assert_eq!(parse("a b\nc d\n    equivalent: so\n").1.len(), 1);
        assert_eq!(parse("a b\n    because\n").1.len(), 1);
        assert_eq!(parse("a b\n").1.len(), 1);
        assert_ne!(parse("ab\n    equivalent: so\n").1.len(), 0);
    }
}

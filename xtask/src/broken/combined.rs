//! Known defects that are in one build: a function that a defect changes asks which defect was chosen, and runs the body with it or the one
//! without. So most defects cost no compiler.
//!
//! That works for defects that change nothing except what is within functions. Others are built by themselves. These change a constant,
//! a type or an import, a function that the compiler may evaluate, a function whose type follows from its body, or a macro.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::mutants::Mutant;

/// A body that a defect gives to a function, which is counted among those of a file.
#[derive(Debug, PartialEq, Eq)]
struct Body {
    function: usize,
    text: String,
}

/// The files with all defects that can be in one build.
#[derive(Debug, Default)]
pub(super) struct Combined {
    files: Vec<(PathBuf, String)>,
    /// For each defect whether it is in there.
    has: Vec<bool>,
}

impl Combined {
    /// Combines `mutants`, whose numbers are their places in the list. `read` gives the files as they are without.
    pub(super) fn of(mutants: &[&Mutant], read: impl Fn(&Path) -> Result<String>) -> Result<Self> {
        let mut all = Self::default();
        let mut bodies = BTreeMap::<PathBuf, Vec<(usize, Body)>>::new();
        for (number, mutant) in mutants.iter().enumerate() {
            let mut changed = Vec::new();
            let mut is_in = true;
            let applied = mutant.apply(&read);
            let applied = applied.with_context(|| format!("{} does not apply", mutant.path().display()))?;
            for (path, text) in applied {
                match changes(&read(&path)?, &text)? {
                    Some(found) => changed.push((path, found)),
                    None => is_in = false,
                }
            }
            all.has.push(is_in);
            for (path, found) in changed.into_iter().filter(|_| is_in) {
                bodies.entry(path).or_default().extend(found.into_iter().map(|body| (number, body)));
            }
        }
        for (path, bodies) in bodies {
            let text = with_choices(&read(&path)?, &bodies)?;
            all.files.push((path, text));
        }
        Ok(all)
    }

    /// Whether the defect with this number is in there.
    pub(super) fn has(&self, number: usize) -> bool {
        self.has[number]
    }

    /// How many defects are in there.
    pub(super) fn count(&self) -> usize {
        self.has.iter().filter(|has| **has).count()
    }

    /// The files, by their paths from the root.
    pub(super) fn files(&self) -> Vec<(PathBuf, String)> {
        self.files.clone()
    }
}

/// A function that has a body.
struct Function {
    /// What is between its braces.
    at: Range<usize>,
    /// The tokens of that.
    tokens: String,
    /// Whether its body may have a choice in it.
    can_choose: bool,
}

/// A file's functions, and the tokens of all that is not in one.
#[derive(Default)]
struct Parts {
    functions: Vec<Function>,
    others: Vec<String>,
}

impl Parts {
    fn of(text: &str) -> Result<Self> {
        let tokens: TokenStream = text.parse().map_err(|error| anyhow!("no tokens of Rust: {error}"))?;
        let mut parts = Self::default();
        parts.run(tokens);
        Ok(parts)
    }

    /// Looks at the tokens of one group.
    fn run(&mut self, tokens: TokenStream) {
        let run: Vec<_> = tokens.into_iter().collect();
        // Where the function begins whose body is to come.
        let mut function = None;
        for (at, token) in run.iter().enumerate() {
            match token {
                TokenTree::Group(group) => match function {
                    Some(start) if group.delimiter() == Delimiter::Brace => {
                        function = None;
                        self.functions.push(Function {
                            at: group.span_open().byte_range().end..group.span_close().byte_range().start,
                            tokens: group.stream().to_string(),
                            can_choose: can_choose(&run, start, at),
                        });
                        self.others.push("{..}".to_owned());
                    }
                    _ if is_macro(&run, at) => self.others.push(group.to_string()),
                    _ => self.inside(group),
                },
                token => {
                    let word = token.to_string();
                    if word == "fn" && matches!(run.get(at + 1), Some(TokenTree::Ident(_))) {
                        function = Some(at);
                    } else if word == ";" {
                        function = None;
                    }
                    self.others.push(word);
                }
            }
        }
    }

    fn inside(&mut self, group: &Group) {
        self.others.push(format!("{:?}", group.delimiter()));
        self.run(group.stream());
        self.others.push("end".to_owned());
    }
}

/// Whether the group at `at` is what `macro_rules!` defines: its functions are of wherever it is used.
fn is_macro(run: &[TokenTree], at: usize) -> bool {
    at >= 3 && run[at - 3].to_string() == "macro_rules"
}

/// Whether the function from `start` to its body at `body` is evaluated at run time only, and has a type that its signature says.
fn can_choose(run: &[TokenTree], start: usize, body: usize) -> bool {
    let is_qualifier = |token: &&TokenTree| {
        matches!(token, TokenTree::Literal(_))
            || ["const", "async", "unsafe", "extern"].contains(&&*token.to_string())
    };
    let is_const =
        run[..start].iter().rev().take_while(is_qualifier).any(|token| token.to_string() == "const");
    let words: Vec<_> = run[start..body].iter().map(ToString::to_string).collect();
    let arrow = words.windows(2).position(|two| two == ["-", ">"]).unwrap_or(words.len());
    !is_const && !words[arrow..].iter().any(|word| word == "impl")
}

/// The bodies that differ between two states of a file; `None` when anything else differs, or a body that may have no choice in it.
fn changes(before: &str, after: &str) -> Result<Option<Vec<Body>>> {
    let (old, new) = (Parts::of(before)?, Parts::of(after)?);
    if old.others != new.others {
        return Ok(None);
    }
    let mut changed = Vec::new();
    for (number, (old, new)) in old.functions.iter().zip(&new.functions).enumerate() {
        if old.tokens == new.tokens {
            continue;
        }
        if !old.can_choose {
            return Ok(None);
        }
        changed.push(Body { function: number, text: after[new.at.clone()].to_owned() });
    }
    Ok(Some(changed))
}

/// A file's text in which functions choose among their bodies.
fn with_choices(text: &str, bodies: &[(usize, Body)]) -> Result<String> {
    let mut changed = text.to_owned();
    // From behind, so that the other functions stay where they are.
    for (number, function) in Parts::of(text)?.functions.iter().enumerate().rev() {
        let mut choices = String::new();
        for (mutant, body) in bodies.iter().filter(|(_, body)| body.function == number) {
            choices += &format!("if crate::chosen_mutant::is({mutant}) {{{}}} else ", body.text);
        }
        if !choices.is_empty() {
            let body = format!(" {choices}{{{}}} ", &text[function.at.clone()]);
            changed.replace_range(function.at.clone(), &body);
        }
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(before: &str, after: &str) -> Option<Vec<(usize, String)>> {
        let found = changes(before, after).unwrap()?;
        Some(found.into_iter().map(|body| (body.function, body.text)).collect())
    }

    #[test]
    fn bodies_that_differ_are_found() {
        let before = "fn a() { 1 }\nimpl B { pub(crate) fn b(&self) -> u8 { fn c() {} 2 } }\nfn d();";
        assert_eq!(
            bodies(before, &before.replace("2 }", "3 }")),
            Some(vec![(1, " fn c() {} 3 ".to_owned())])
        );
        let both = before.replace("{ 1 }", "{ /* one */ 0 }").replace("{} 2", "{} 4");
        assert_eq!(bodies(before, &both).map(|bodies| bodies.len()), Some(2));
        // A comment is no change.
        assert_eq!(bodies(before, &before.replace("2 }", "2 /* two */ }")), Some(vec![]));
    }

    #[test]
    fn what_is_not_within_a_function_is_built_by_itself() {
        for (before, after) in [
            ("const A: u8 = 1; fn a() { 1 }", "const A: u8 = 2; fn a() { 2 }"),
            ("fn a() { 1 }", "fn a() -> u8 { 2 }"),
            ("const unsafe extern \"C\" fn a() { 1 }", "const unsafe extern \"C\" fn a() { 2 }"),
            ("fn a(f: u8) -> impl Fn() { 1 }", "fn a(f: u8) -> impl Fn() { 2 }"),
            ("macro_rules! a { () => { fn a() { 1 } } }", "macro_rules! a { () => { fn a() { 2 } } }"),
        ] {
            assert_eq!(bodies(before, after), None, "{before}");
        }
        assert!(bodies("fn a(f: impl Fn()) -> u8 { 1 }", "fn a(f: impl Fn()) -> u8 { 2 }").is_some());
        assert!(bodies("some! { fn a() { 1 } }", "some! { fn a() { 2 } }").is_some());
    }

    #[test]
    fn functions_choose_among_their_bodies() {
        let text = "fn a() { 1 } fn b() { 2 }";
        let bodies =
            [(7, " 3 "), (9, " 4 ")].map(|(mutant, text)| (mutant, Body { function: 1, text: text.into() }));
        assert_eq!(
            with_choices(text, &bodies).unwrap(),
            "fn a() { 1 } fn b() { if crate::chosen_mutant::is(7) { 3 } else \
             if crate::chosen_mutant::is(9) { 4 } else { 2 } }"
        );
    }
}

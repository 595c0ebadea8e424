//! The code of a Rust file, by its tokens, with or without what is there for tests alone.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A file without comments.
pub(crate) struct Code {
    pub(crate) tokens: Vec<TokenTree>,
    /// Names of modules that are in files of their own, for tests.
    pub(crate) test_modules: Vec<String>,
}

impl Code {
    pub(crate) fn of(text: &str, with_tests: bool) -> Result<Self> {
        let tokens: TokenStream = text.parse().map_err(|error| anyhow!("not Rust: {error}"))?;
        let mut test_modules = Vec::new();
        let tokens = stripped(tokens, with_tests, &mut test_modules);
        Ok(Self { tokens, test_modules })
    }

    pub(crate) fn lines(&self) -> usize {
        lines(&self.tokens).len()
    }
}

/// Without doc comments, and without items for tests unless `with_tests`.
fn stripped(tokens: TokenStream, with_tests: bool, test_modules: &mut Vec<String>) -> Vec<TokenTree> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut kept, mut at) = (Vec::new(), 0);
    while let Some(token) = tokens.get(at) {
        let attribute = attribute(&tokens[at..]);
        if let Some((length, attribute)) = &attribute {
            // The tokens that stand for a doc comment are each as long as the comment.
            if token.span().byte_range().len() > 1 {
                at += length;
                continue;
            }
            if !with_tests && is_test(attribute) {
                let length = item(&tokens[at..]);
                if let [.., TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Punct(_)] =
                    &tokens[at..at + length]
                    && word == "mod"
                {
                    test_modules.push(name.to_string());
                }
                at += length;
                continue;
            }
        }
        kept.push(match token {
            TokenTree::Group(group) => {
                let inside = stripped(group.stream(), with_tests, test_modules);
                let mut new = Group::new(group.delimiter(), inside.into_iter().collect());
                new.set_span(group.span());
                TokenTree::Group(new)
            }
            other => other.clone(),
        });
        at += 1;
    }
    kept
}

/// If tokens begin with an attribute: of how many it is, and what is in its brackets.
fn attribute(tokens: &[TokenTree]) -> Option<(usize, &Group)> {
    let is = |token: &TokenTree, mark| matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark);
    match tokens {
        [hash, TokenTree::Group(group), ..] if is(hash, '#') => Some((2, group)),
        [hash, inner, TokenTree::Group(group), ..] if is(hash, '#') && is(inner, '!') => Some((3, group)),
        _ => None,
    }
}

/// Whether what has this attribute is there in tests alone.
fn is_test(attribute: &Group) -> bool {
    let text: String = attribute.stream().to_string().split_whitespace().collect();
    text == "test"
        || text.strip_prefix("cfg(").and_then(|rest| rest.strip_suffix(')')).is_some_and(needs_test)
}

fn needs_test(condition: &str) -> bool {
    let parts = |inside: &str| {
        let mut depth = 0;
        let mut split = |c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        };
        inside.split(&mut split).map(str::to_owned).collect::<Vec<_>>()
    };
    let inside = |word: &str| condition.strip_prefix(word)?.strip_suffix(')').map(parts);
    condition == "test"
        || inside("all(").is_some_and(|parts| parts.iter().any(|part| needs_test(part)))
        || inside("any(").is_some_and(|parts| parts.iter().all(|part| needs_test(part)))
}

/// How many tokens the item has that begins here, with its attributes: up to its braces, a semicolon or a comma.
fn item(tokens: &[TokenTree]) -> usize {
    let mut at = 0;
    while let Some((length, _)) = attribute(&tokens[at..]) {
        at += length;
    }
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => matches!(punct.as_char(), ';' | ','),
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    tokens[at..].iter().position(ends).map_or(tokens.len(), |end| at + end + 1)
}

/// The lines that tokens are on.
fn lines(tokens: &[TokenTree]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for token in tokens {
        if let TokenTree::Group(group) = token {
            found.extend([group.span_open().start().line, group.span_close().end().line]);
            found.append(&mut lines(&group.stream().into_iter().collect::<Vec<_>>()));
        } else {
            found.extend(token.span().start().line..=token.span().end().line);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blanks_and_tests_are_no_lines() {
        let text = "//! A.\n\n/// B.\n#[derive(Debug)]\npub struct C(/* D */\n\"e\n\nf\",\n);\n#[cfg(all(test, unix))]\n#[path = \"g\"]\nmod h;\n\
                    #[cfg(any(test, unix))]\nfn i() {}\n#[cfg(test)]\nmod tests {\n fn j() {}\n}\n";
        let code = Code::of(text, false).unwrap();
        assert_eq!((code.lines(), code.test_modules), (8, vec!["h".to_owned()]));
        assert_eq!(Code::of(text, true).unwrap().lines(), 15);
    }
}

//! Links of texts to our own files: they lead to a file that exists, and to a heading that it has.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

use super::Finding;

/// Where the manifests say that the sources are. The target of a link to there is looked for here.
const REPOSITORY: &str = "https://github.com/bufworks/bufworks";
/// Where the documentation of the packages will be once they are published.
const DOCUMENTATION: &str = "https://docs.rs/buf";

/// Checks the Markdown file `name` of the workspace.
pub(super) fn check(name: &Path, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, link) in links(text) {
        let problem = match in_repository(&link) {
            Some(path) => leads_somewhere(Path::new(""), path, name, text),
            None if link.starts_with(DOCUMENTATION) => Some("is not there yet".to_owned()),
            None if is_foreign(&link) => None,
            None if shown_by_rustdoc(name) && !link.starts_with('#') => Some(format!(
                "is relative, which is broken where the documentation is shown: {REPOSITORY}/blob/main/…"
            )),
            None => leads_somewhere(name.parent().unwrap_or(Path::new("")), &link, name, text),
        };
        found.extend(problem.map(|problem| Finding::at(at, format!("link to `{link}`, which {problem}"))));
    }
    found
}

/// Checks what the comments of the Rust file `name` link to in the repository; rustdoc checks the
/// rest.
pub(super) fn check_rust(name: &Path, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    if !text.contains(REPOSITORY) {
        return found;
    }
    // An empty line in the place of code keeps the lines' numbers, and ends what is in front of it.
    let comment = |line: &str| match line.split_once("//") {
        Some((_, comment)) => format!("{}\n", comment.trim_start_matches(['/', '!'])),
        None => "\n".to_owned(),
    };
    for (at, link) in links(&text.lines().map(comment).collect::<String>()) {
        let problem = in_repository(&link).and_then(|path| leads_somewhere(Path::new(""), path, name, text));
        found.extend(problem.map(|problem| Finding::at(at, format!("link to `{link}`, which {problem}"))));
    }
    found
}

/// The path in the repository that a web address stands for, with its anchor.
fn in_repository(link: &str) -> Option<&str> {
    let path = link.strip_prefix(REPOSITORY)?;
    ["/blob/main/", "/tree/main/", "/raw/main/"].iter().find_map(|start| path.strip_prefix(start))
}

/// Whether something else knows where the link leads: the web, or rustdoc for a path of Rust's.
fn is_foreign(link: &str) -> bool {
    link.contains(':')
}

/// Texts that stand in a package's documentation, where our folders are not.
fn shown_by_rustdoc(name: &Path) -> bool {
    let parts: Vec<_> = name.iter().filter_map(|part| part.to_str()).collect();
    matches!(parts[..], ["crates", _, "docs" | "src", ..])
}

/// What is wrong with `link`, seen from `folder`, in the file `name` that reads `text`.
fn leads_somewhere(folder: &Path, link: &str, name: &Path, text: &str) -> Option<String> {
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() { name.to_owned() } else { folder.join(file) };
    if !file.is_empty() && !path.exists() {
        return Some("does not exist".to_owned());
    }
    let anchor = anchor?;
    let read;
    let target = if file.is_empty() {
        text
    } else {
        read = fs::read_to_string(&path).unwrap_or_default();
        &read
    };
    let is_there = if path.extension().is_some_and(|ending| ending == "md") {
        anchors(target).iter().any(|there| there == anchor)
    } else {
        anchor
            .strip_prefix('L')
            .and_then(|line| line.parse().ok())
            .is_some_and(|line| (1..=target.lines().count()).contains(&line))
    };
    (!is_there).then(|| format!("has no `#{anchor}`"))
}

/// Every link of a Markdown text and every picture in it, with the line on which it ends, from 1.
fn links(text: &str) -> Vec<(usize, String)> {
    let line = |end: usize| 1 + text[..end].matches('\n').count();
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES);
    // `[label]: there` is one link, however often its label is used.
    let labels = parser.reference_definitions().iter();
    let mut found: Vec<_> =
        labels.map(|(_, label)| (line(label.span.start), label.dest.to_string())).collect();
    for (event, range) in parser.into_offset_iter() {
        if let Event::Start(Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. }) =
            event
            && matches!(link_type, LinkType::Inline | LinkType::Autolink)
        {
            found.push((line(range.end), dest_url.into_string()));
        }
    }
    found.sort();
    found
}

/// What the headings of a Markdown text are called in addresses, as GitHub and rustdoc name them.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut names = Vec::new();
    let mut title: Option<String> = None;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => title = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(title) = &mut title {
                    *title += &text;
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let name = slug(&title.take().unwrap_or_default());
                let count = seen.entry(name.clone()).or_default();
                *count += 1;
                names.push(if *count == 1 { name } else { format!("{name}-{}", *count - 1) });
            }
            _ => {}
        }
    }
    names
}

/// Small letters, digits, and hyphens for spaces.
fn slug(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_found(name: &str, text: &str) -> Vec<usize> {
        check(Path::new(name), text).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn files_have_to_be_there() {
        // Tests run in the package's folder.
        assert_eq!(lines_found("a.md", "[a](Cargo.toml) [b](src/main.rs)\n"), [0; 0]);
        assert_eq!(lines_found("a.md", "\n[a](no-such-file.md)\n"), [2]);
        assert_eq!(lines_found("src/a.md", "[a](main.rs) [b](../Cargo.toml) [c](Cargo.toml)\n"), [1]);
        assert_eq!(lines_found("a.md", "![a](no.svg) ![b](no.png \"title\")\n"), [1, 1]);
        assert_eq!(lines_found("a.md", "[a]: no.md\n[b]: <no such.md>\n[c]: Cargo.toml\n"), [1, 2]);
        assert_eq!(lines_found("a.md", "[a](https://example.org) [b](crate::No)\n"), [0; 0]);
    }

    #[test]
    fn headings_have_to_be_there() {
        let text = "# One *two*\n\n## `Three`: 4!\n\n## One two\n\n";
        let links = |link: &str| lines_found("a.md", &format!("{text}[a](#{link})\n"));
        for link in ["one-two", "three-4", "one-two-1"] {
            assert_eq!(links(link), [0; 0], "{link}");
        }
        for link in ["one", "one-two-2", "Three-4", ""] {
            assert_eq!(links(link), [7], "{link}");
        }
        assert_eq!(
            lines_found("a.md", "[a](Cargo.toml#L1) [b](Cargo.toml#L9999) [c](Cargo.toml#x)\n"),
            [1, 1]
        );
    }

    #[test]
    fn headings_are_named_as_on_the_web() {
        let text = "# A [link](b.md) and `code_of()`\n```text\n# no heading\n```\n#no\n####### no\n### Über, 2 – b ###\n";
        assert_eq!(anchors(text), ["a-link-and-code_of", "über-2--b"]);
    }

    #[test]
    fn code_is_not_looked_at() {
        assert_eq!(lines_found("a.md", "```text\n[a](no.md)\n```\n[b](no.md)\n"), [4]);
        assert_eq!(lines_found("a.md", "`[a](no.md)` ``[b](`no.md)`` [c](no.md)\n"), [1]);
        assert_eq!(lines_found("a.md", "~~~\n```\n[a](no.md)\n~~~\n"), [0; 0]);
        assert_eq!(lines_found("a.md", "[`a`](no.md) and ` alone [b](no.md)\n"), [1, 1]);
    }

    #[test]
    fn the_repository_is_looked_for_here() {
        let link = |path: &str| format!("[a]({REPOSITORY}{path})\n");
        for name in ["a.md", "crates/a/docs/guide.md"] {
            assert_eq!(lines_found(name, &link("")), [0; 0]);
            assert_eq!(lines_found(name, &link("/issues/1")), [0; 0]);
            assert_eq!(lines_found(name, &link("/blob/main/Cargo.toml")), [0; 0]);
            assert_eq!(lines_found(name, &link("/tree/main/src")), [0; 0]);
            assert_eq!(lines_found(name, &link("/blob/main/no.md#a")), [1]);
        }
        let rust = |text: &str| check_rust(Path::new("src/a.rs"), text).len();
        assert_eq!(rust(&format!("//! {}", link("/blob/main/no.md"))), 1);
        assert_eq!(rust(&format!("//! {}//! [b](no.md)\n", link("/blob/main/Cargo.toml"))), 0);
        assert_eq!(rust(&format!("/// [a]: {REPOSITORY}/blob/main/no.md\n")), 1);
        assert_eq!(rust(&format!("const A: &str = \"{REPOSITORY}\";\n")), 0);
    }

    #[test]
    fn pages_are_not_linked_to_before_they_are_there() {
        assert_eq!(
            lines_found("a.md", "[a](https://docs.rs/bufslot/latest/) [b](https://docs.rs/bytes)\n"),
            [1]
        );
    }

    #[test]
    fn documentation_has_no_relative_links() {
        assert_eq!(
            lines_found("crates/a/docs/guide.md", "# A\n[a](../Cargo.toml) [b](#a) [c](#b)\n"),
            [2, 2]
        );
    }
}

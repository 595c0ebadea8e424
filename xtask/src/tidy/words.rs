//! Plain words: sentences of documents that are too long, or that readers stumble over.
//!
//! Code, tables, headings and the targets of links are not looked at. In sources, the documentation of
//! files and of public items is.

use std::path::Path;

use super::Finding;

/// A sentence has fewer words than this.
const MAX_WORDS: usize = 30;
/// Words that begin a sentence without a subject; a question may begin with them.
const HEADLESS: [&str; 7] = ["Who", "What", "Whose", "Whoever", "Whatever", "Whichever", "Whom"];
/// Turns of phrase, each with what to write in its place.
const PHRASES: [(&str, &str); 5] = [
    ("but for", "except"),
    ("so many", "the count, or `this number of`"),
    ("of ours", "our"),
    ("at the most", "at most"),
    ("just so", "the manner itself"),
];
/// Pages do not stand.
const STANDS: [&str; 2] = ["stand", "stands"];
/// After these, the word before is used in another sense, as in `stands for`.
const STANDS_FOR: [&str; 2] = ["for", "in"];

/// Whether the rules are for the document `name`: front pages, guides, and pages that say so.
pub(super) fn applies(name: &Path) -> bool {
    let parts: Vec<_> = name.iter().filter_map(|part| part.to_str()).collect();
    match parts[..] {
        ["README.md" | "CHANGELOG.md" | "CONTRIBUTING.md" | "SECURITY.md"] => true,
        ["docs", page] => PAGES.contains(&page),
        ["crates", _, "README.md"] => true,
        ["crates", _, "docs", page] => page.ends_with(".md"),
        _ => false,
    }
}

/// The pages of `docs` that follow the rules.
const PAGES: [&str; 3] = ["architecture.md", "testing.md", "unsafe.md"];

/// The packages whose files and public items follow the rules in their documentation.
const PACKAGES: [&str; 9] = [
    "bufadvise",
    "bufbump",
    "bufcore",
    "bufmirror",
    "bufring",
    "bufshard",
    "bufslot",
    "buftrace",
    "bufworks",
];

/// Whether the rules are for the documentation in the source file `name`.
pub(super) fn applies_to_source(name: &Path) -> bool {
    let parts: Vec<_> = name.iter().filter_map(|part| part.to_str()).collect();
    matches!(parts[..], ["crates", package, "src", .., file] if PACKAGES.contains(&package) && file.ends_with(".rs"))
}

/// Checks the documentation of a source file and of each public item in it.
pub(super) fn check_source(text: &str) -> Vec<Finding> {
    let lines = text.lines().enumerate();
    let of_file = lines.filter_map(|(at, line)| Some((at + 1, line.trim().strip_prefix("//!")?)));
    let mut found: Vec<_> =
        paragraphs(of_file).iter().flat_map(|(line, text)| findings(*line, text)).collect();
    found.extend(check_items(text));
    found
}

/// Checks what documents each public item of a source file.
fn check_items(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut docs: Vec<(usize, &str)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(doc) = line.strip_prefix("///") {
            docs.push((at + 1, doc));
            continue;
        }
        // Attributes may be between the two, over several lines.
        if line.starts_with(['#', ')', ']', '"']) {
            continue;
        }
        if line.starts_with("pub ") {
            let paragraphs = paragraphs(docs.iter().copied());
            found.extend(paragraphs.iter().flat_map(|(line, text)| findings(*line, text)));
        }
        docs.clear();
    }
    found
}

/// Checks a Markdown text.
pub(super) fn check(text: &str) -> Vec<Finding> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    paragraphs(lines).iter().flat_map(|(line, text)| findings(*line, text)).collect()
}

/// What is wrong in a paragraph that begins in `line`.
fn findings(line: usize, paragraph: &str) -> Vec<Finding> {
    let plain = plain(paragraph);
    let mut found = Vec::new();
    for sentence in sentences(&plain) {
        let words: Vec<_> = sentence.split_whitespace().filter(|word| has_letter(word)).collect();
        let start = words.iter().take(6).copied().collect::<Vec<_>>().join(" ");
        let mut find = |message: String| found.push(Finding::at(line, format!("{message}: “{start} …”")));
        if words.len() >= MAX_WORDS {
            find(format!("a sentence of {} words, {MAX_WORDS} are too many", words.len()));
        }
        if words.first().is_some_and(|first| HEADLESS.contains(first)) && !sentence.ends_with('?') {
            find("a sentence without a named subject".to_owned());
        }
        let bare: Vec<_> = words.iter().map(|word| bare(word)).collect();
        for (phrase, instead) in PHRASES {
            let phrase_words: Vec<_> = phrase.split(' ').collect();
            if bare.windows(phrase_words.len()).any(|window| window == phrase_words) {
                find(format!("“{phrase}”: write {instead}"));
            }
        }
        let stands = bare.iter().enumerate().any(|(at, word)| {
            let next = bare.get(at + 1).map_or("", String::as_str);
            STANDS.contains(&word.as_str()) && !STANDS_FOR.contains(&next)
        });
        if stands {
            find("something “stands”: it is described, listed or shown".to_owned());
        }
    }
    found
}

/// The paragraphs and points of lists among `lines`, in one line each, with the number of the first.
fn paragraphs<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut open = false;
    for (number, line) in lines {
        let line = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
        if let Some(mark) = mark {
            fence = match fence {
                None => Some(mark),
                Some(open) if open == mark => None,
                other => other,
            };
            open = false;
            continue;
        }
        if fence.is_some() {
            continue;
        }
        if line.is_empty() || line.starts_with(['#', '|', '<']) || line.starts_with("![") {
            open = false;
            continue;
        }
        let point = point(line);
        if point.is_some() {
            open = false;
        }
        let text = point.unwrap_or(line);
        match found.last_mut().filter(|_| open) {
            Some((_, paragraph)) => {
                paragraph.push(' ');
                paragraph.push_str(text);
            }
            None => found.push((number, text.to_owned())),
        }
        open = true;
    }
    found
}

/// The text of a list's point.
fn point(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let marks: &[&str] = if rest.len() < line.len() { &[". "] } else { &["- ", "* "] };
    marks.iter().find_map(|mark| rest.strip_prefix(mark))
}

/// A paragraph without marks: a piece of code is one word, a link is its text.
fn plain(paragraph: &str) -> String {
    let mut plain = String::new();
    let mut in_code = false;
    for piece in paragraph.split('`') {
        plain.push_str(if in_code { "Code" } else { piece });
        in_code = !in_code;
    }
    let mut text = String::new();
    let mut rest = plain.as_str();
    while let Some((before, link)) = rest.split_once("](") {
        text.push_str(before);
        rest = link.split_once(')').map_or("", |(_, behind)| behind);
    }
    text.push_str(rest);
    text.chars().filter(|c| !matches!(c, '[' | ']' | '*' | '_')).collect()
}

/// The sentences of a text: each ends in front of a word that begins with a capital letter or a number.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, mark) in text.match_indices(['.', '!', '?']) {
        let end = at + mark.len();
        let behind = text[end..].trim_start_matches(['”', '"', ')']);
        let next = behind.trim_start();
        let spaced = next.len() < behind.len();
        if spaced
            && next.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || c == '(' || c == '“')
        {
            found.push(text[start..end].trim());
            start = end;
        }
    }
    found.push(text[start..].trim());
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// A word in small letters, without the marks around it.
fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

fn has_letter(word: &str) -> bool {
    word.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<(usize, String)> {
        check(text).into_iter().map(|finding| (finding.line, finding.message)).collect()
    }

    #[test]
    fn plain_sentences_are_left_alone() {
        let text = "# What a heading may be\n\nA pool hands out buffers. What is a pool? It is this.\n\n\
                    - `What` it is: see [What it is](what.md).\n- A `_` stands for any value.\n\n\
                    | What | so many |\n\n```text\nWhoever stands there.\n```\n";
        assert_eq!(messages(text), []);
    }

    #[test]
    fn long_sentences_are_found() {
        let words = |count: usize| format!("A {}.\n", "word ".repeat(count - 1).trim_end());
        assert_eq!(messages(&words(MAX_WORDS - 1)), []);
        let found = messages(&format!("Short.\n\n{}", words(MAX_WORDS)));
        assert_eq!(found.len(), 1);
        assert!(found[0].0 == 3 && found[0].1.contains("30 words"), "{found:?}");
        // Several lines are one sentence; a piece of code is one word.
        let lines = "word word word\n".repeat(MAX_WORDS / 3);
        assert_eq!(messages(&lines).len(), 1);
        assert_eq!(messages(&format!("A `{}`.\n", "word ".repeat(MAX_WORDS))), []);
        // Points of a list are sentences of their own.
        assert_eq!(messages(&"- word word word\n1. word\n".repeat(MAX_WORDS)), []);
    }

    #[test]
    fn sentences_without_a_subject_are_found() {
        assert_eq!(messages("It is full. What does not fit is refused.\n").len(), 1);
        assert_eq!(messages("- **Who** fails is named.\n").len(), 1);
        assert_eq!(messages("It names who fails.\n"), []);
    }

    #[test]
    fn turns_of_phrase_are_found() {
        let turns =
            "Nothing, but for one. There are so many. One\nof ours. Ten at the most. It is just so.\n";
        assert_eq!(messages(turns).len(), PHRASES.len());
        assert_eq!(messages("Where it loses stands there.\n").len(), 1);
    }

    #[test]
    fn documentation_of_files_and_public_items_is_checked() {
        let lines = |text| check_source(text).iter().map(|finding| finding.line).collect::<Vec<_>>();
        assert_eq!(lines("/// What it has.\n#[must_use]\npub fn has() {}\n"), [1]);
        assert_eq!(lines("/// Returns what it has.\n///\n/// What follows is free.\npub fn has() {}\n"), [3]);
        let later =
            "/// It.\n///\n/// ```\n/// so many\n/// ```\n///\n/// So many\n/// others.\npub fn has() {}\n";
        assert_eq!(lines(later), [7]);
        assert_eq!(lines("//! What it is for.\n\nuse a::b;\n"), [1]);
        assert_eq!(lines("/// What it has.\nfn has() {}\n/// Who.\npub(crate) fn who() {}\n"), [0; 0]);
        assert!(applies_to_source(Path::new("crates/bufslot/src/pool.rs")));
        assert!(!applies_to_source(Path::new("crates/buftest/src/lib.rs")));
    }

    #[test]
    fn documents_that_are_checked() {
        for name in
            ["README.md", "crates/bufslot/README.md", "crates/bufslot/docs/guide.md", "docs/testing.md"]
        {
            assert!(applies(Path::new(name)), "{name}");
        }
        for name in ["docs/results.md", "crates/bufslot/CHANGELOG.md", "crates/bufslot/src/lib.rs"] {
            assert!(!applies(Path::new(name)), "{name}");
        }
    }
}

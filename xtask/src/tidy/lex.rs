//! Tells a Rust file's code from its comments, line by line, so that rules do not trip over words in strings.

/// One line of a file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Without comments, and with the insides of string and character literals left out.
    pub(super) code: String,
    /// The comments, with their slashes.
    pub(super) comment: String,
}

/// What the next character belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    /// With so many block comments open.
    BlockComment(usize),
    Text,
    /// A raw string that ends at a quote and so many hashes.
    RawText(usize),
}

/// Splits `text` into lines.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let chars: Vec<char> = text.chars().collect();
    let mut lines = vec![Line::default()];
    let mut state = State::Code;
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        if rest[0] == '\n' {
            if state == State::LineComment {
                state = State::Code;
            }
            lines.push(Line::default());
            at += 1;
            continue;
        }
        // There is one from the start.
        let Some(line) = lines.last_mut() else { break };
        let taken = match state {
            State::Code => code(rest, line, &mut state, at > 0 && is_word(chars[at - 1])),
            State::LineComment => {
                line.comment.push(rest[0]);
                1
            }
            State::BlockComment(depth) => block_comment(rest, depth, line, &mut state),
            State::Text => match rest[0] {
                // An escaped line end still ends the line.
                '\\' if rest.get(1).is_some_and(|&next| next != '\n') => 2,
                '"' => {
                    line.code.push('"');
                    state = State::Code;
                    1
                }
                _ => 1,
            },
            State::RawText(hashes) => {
                let ends = rest[0] == '"' && rest[1..].iter().take_while(|&&c| c == '#').count() >= hashes;
                if ends {
                    line.code.push('"');
                    state = State::Code;
                }
                if ends { 1 + hashes } else { 1 }
            }
        };
        at += taken;
    }
    lines
}

fn code(rest: &[char], line: &mut Line, state: &mut State, in_word: bool) -> usize {
    let second = rest.get(1).copied().unwrap_or(' ');
    match (rest[0], second) {
        ('/', '/') => *state = State::LineComment,
        ('/', '*') => *state = State::BlockComment(0),
        ('"', _) => {
            line.code.push('"');
            *state = State::Text;
            return 1;
        }
        ('r', '"' | '#') if !in_word || matches!(line.code.as_str().chars().last(), Some('b' | 'c')) => {
            let hashes = rest[1..].iter().take_while(|&&c| c == '#').count();
            line.code.push('r');
            if rest.get(1 + hashes) != Some(&'"') {
                return 1; // a raw name
            }
            line.code.push('"');
            *state = State::RawText(hashes);
            return 2 + hashes;
        }
        ('\'', _) => {
            // A character, or else a lifetime or label.
            let closing = match second {
                '\\' => rest[2..].iter().skip(1).position(|&c| c == '\'').map(|found| found + 3),
                _ => (rest.get(2) == Some(&'\'')).then_some(2),
            };
            line.code.push('\'');
            return closing.map_or(1, |closing| {
                line.code.push('\'');
                closing + 1
            });
        }
        (c, _) => line.code.push(c),
    }
    usize::from(*state == State::Code)
}

fn block_comment(rest: &[char], depth: usize, line: &mut Line, state: &mut State) -> usize {
    let pair = (rest[0], rest.get(1).copied().unwrap_or(' '));
    let (taken, next) = match pair {
        ('/', '*') => (2, State::BlockComment(depth + 1)),
        ('*', '/') if depth <= 1 => (2, State::Code),
        ('*', '/') => (2, State::BlockComment(depth - 1)),
        _ => (1, *state),
    };
    line.comment.extend(&rest[..taken]);
    *state = next;
    taken
}

/// Whether `c` can be part of a name.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(String, String)> {
        lines(text).into_iter().map(|line| (line.code, line.comment)).collect()
    }

    #[test]
    fn comments_are_told_from_code() {
        assert_eq!(split("a // b"), [("a ".into(), "// b".into())]);
        assert_eq!(split("a /* b */ c"), [("a  c".into(), "/* b */".into())]);
        assert_eq!(
            split("/* a /* b */ c */ d\ne"),
            [(" d".into(), "/* a /* b */ c */".into()), ("e".into(), String::new())]
        );
        assert_eq!(split("/* a\nb */ c"), [(String::new(), "/* a".into()), (" c".into(), "b */".into())]);
    }

    #[test]
    fn the_insides_of_literals_are_left_out() {
        assert_eq!(split(r#"f("unsafe { // x", '"', '\'', 'a')"#)[0].0, "f(\"\", '', '', '')");
        assert_eq!(split("r#\"a \" // b\"# + c")[0].0, "r\"\" + c");
        assert_eq!(split("br\"a\\\" + b'\\\\' // x"), [("br\"\" + b'' ".into(), "// x".into())]);
        assert_eq!(split("\"a\nb\" c // d")[1], ("\" c ".into(), "// d".into()));
        assert_eq!(split("\"a \\\" b\" // c"), [("\"\" ".into(), "// c".into())]);
    }

    #[test]
    fn lifetimes_and_raw_names_are_code() {
        assert_eq!(split("fn f<'a>(x: &'a str) {} // 'x'")[0].0, "fn f<'a>(x: &'a str) {} ");
        assert_eq!(split("r#type + for\"x\"")[0].0, "r#type + for\"\"");
    }
}

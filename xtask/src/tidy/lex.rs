//! Tells a Rust file's code from its comments, line by line, so that rules do not trip over words
//! in strings. The tokens are those of the compiler's own lexer.

use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

/// One line of a file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Without comments, and with the insides of string and character literals left out.
    pub(super) code: String,
    /// The comments, with their slashes.
    pub(super) comment: String,
}

/// Splits `text` into lines.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut lines = vec![Line::default()];
    let mut rest = text;
    for token in tokenize(text, FrontmatterAllowed::No) {
        let (token_text, behind) = rest.split_at(token.len as usize);
        rest = behind;
        let is_comment = matches!(token.kind, TokenKind::LineComment { .. } | TokenKind::BlockComment { .. });
        let quotes = match token.kind {
            TokenKind::Literal { kind, .. } => quotes(kind),
            _ => None,
        };
        for (at, part) in token_text.split('\n').enumerate() {
            if at > 0 {
                lines.push(Line::default());
            }
            // There is one from the start.
            let Some(line) = lines.last_mut() else { break };
            match quotes {
                _ if is_comment => line.comment += part,
                Some(quotes) if at == 0 => line.code += quotes,
                Some(_) => {}
                None => line.code += part,
            }
        }
    }
    lines
}

/// What is left of a literal that has an inside.
fn quotes(kind: LiteralKind) -> Option<&'static str> {
    match kind {
        LiteralKind::Int { .. } | LiteralKind::Float { .. } => None,
        LiteralKind::Char { .. } | LiteralKind::Byte { .. } => Some("''"),
        LiteralKind::Str { .. }
        | LiteralKind::ByteStr { .. }
        | LiteralKind::CStr { .. }
        | LiteralKind::RawStr { .. }
        | LiteralKind::RawByteStr { .. }
        | LiteralKind::RawCStr { .. } => Some("\"\""),
    }
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
        assert_eq!(split(r#"f("unsafe { // x", '"', '\'', 'a', 1)"#)[0].0, "f(\"\", '', '', '', 1)");
        assert_eq!(split("r#\"a \" // b\"# + c")[0].0, "\"\" + c");
        assert_eq!(split("br\"a\\\" + b'\\\\' // x"), [("\"\" + '' ".into(), "// x".into())]);
        assert_eq!(split("\"a\nb\" c // d")[1], (" c ".into(), "// d".into()));
        assert_eq!(split("\"a \\\" b\" // c"), [("\"\" ".into(), "// c".into())]);
    }

    #[test]
    fn lifetimes_and_raw_names_are_code() {
        assert_eq!(split("fn f<'a>(x: &'a str) {} // 'x'")[0].0, "fn f<'a>(x: &'a str) {} ");
        assert_eq!(split("r#type + for \"x\"")[0].0, "r#type + for \"\"");
    }
}

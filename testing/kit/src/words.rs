//! What errors say: in plain words, with the numbers of the call.

use core::fmt::Display;

/// Checks what `error` says: one line in lower case, without a full stop, with each of `parts`
/// exactly once.
#[track_caller]
pub fn says(error: &dyn Display, parts: &[&str]) {
    let text = error.to_string();
    let is_plain = !text.is_empty() && !text.starts_with(char::is_uppercase) && !text.ends_with('.');
    assert!(is_plain && !text.contains('\n'), "`{text}` is no plain line");
    for part in parts {
        assert_eq!(text.matches(part).count(), 1, "`{part}` in `{text}`");
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::says;

    #[test]
    fn only_plain_lines_pass() {
        says(&"no room for 5 bytes: 4 available", &["5 bytes", "4"]);
        for (text, part) in [("No room", ""), ("no room.", "room"), ("no\nroom", "room"), ("", "")] {
            assert!(catch_unwind(|| says(&text, &[part])).is_err(), "`{text}`");
        }
        assert!(catch_unwind(|| says(&"no room for 5 bytes", &["4"])).is_err(), "a number is missing");
        assert!(catch_unwind(|| says(&"5 of 5", &["5"])).is_err(), "a number is said twice");
    }
}

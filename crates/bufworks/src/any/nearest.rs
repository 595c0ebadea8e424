//! The name that a wrong one was probably meant to be.

use alloc::string::String;
use alloc::vec::Vec;

/// Letters of a name that are compared. Longer ones are no near miss of anything.
const MOST_LETTERS: usize = 32;

/// Finds the name that is nearest to `name`: one with at most one letter in three wrong, or one
/// that has all of `name` in itself.
pub(super) fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let name = plain(name);
    if name.is_empty() || name.len() > MOST_LETTERS {
        return None;
    }
    let near = names.iter().map(|known| (distance(&name, &plain(known)), *known));
    let (wrong, nearest) = near.min_by_key(|(distance, _)| *distance)?;
    if wrong <= (name.len() / 3).max(1) {
        return Some(nearest);
    }
    // `bytes` for `max_bytes`.
    let whole = |known: &&&str| name.len() > 3 && plain(known).contains(&name);
    names.iter().find(whole).copied()
}

/// Removes what is easily mixed up.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|letter| !['-', '_', ' '].contains(letter))
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

/// Counts the letters that have to be added, left out or changed (Levenshtein), of at most
/// `MOST_LETTERS`.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (index, &known) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != known);
            diagonal = row[index + 1];
            row[index + 1] = changed.min(diagonal + 1).min(row[index] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses() {
        let names = ["heap", "slot", "bounded-slot", "ring", "capacity", "max_bytes", "max_idle_bytes"];
        for (name, meant) in [
            ("slots", Some("slot")),
            ("Heap", Some("heap")),
            ("boundedslot", Some("bounded-slot")),
            ("BOUNDED_SLOT", Some("bounded-slot")),
            ("capacitiy", Some("capacity")),
            ("max-bytes", Some("max_bytes")),
            ("bytes", Some("max_bytes")),
            ("idle_bytes", Some("max_idle_bytes")),
            ("arena", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &names), meant, "{name}");
        }
        assert_eq!(nearest(&"slot".repeat(1000), &names), None);
        assert_eq!(nearest("slot", &[]), None);
    }
}

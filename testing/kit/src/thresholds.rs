//! Sizes and counts at which the implementations change what they do: their constants, and numbers
//! around them.
//!
//! The constants are those of `thresholds.txt`, which `cargo xtask tidy --thresholds` writes from
//! the sources, and `cargo xtask tidy` compares with them. So a new one is tried as soon as it is
//! there.

use std::sync::LazyLock;

/// The largest that pools of the suite are asked for.
const MOST: usize = 1 << 20;
/// From here on a threshold has classes between it and the next power of two.
const CLASSES_FROM: usize = 64;
/// What an implementation may add to a request, or take from it: headers, guards, cache lines.
const HEADERS: [usize; 6] = [8, 16, 24, 32, 48, 64];

/// Returns all thresholds, the smallest first, each once.
pub fn all() -> &'static [usize] {
    static ALL: LazyLock<Vec<usize>> = LazyLock::new(|| parse(include_str!("../thresholds.txt")));
    &ALL
}

/// Reads the values of a list.
fn parse(list: &str) -> Vec<usize> {
    let values = list.lines().filter_map(|line| value(line.split_once(" = ")?.1));
    let mut all: Vec<_> = values.filter(|value| (1..=MOST).contains(value)).collect();
    all.sort_unstable();
    all.dedup();
    assert!(all.len() > 10, "the list has lost its values");
    all
}

/// Returns the value of a plain number, a product or a shift; of a range, its end; of a choice, the
/// last one. Other expressions name constants that are in the list themselves.
fn value(expression: &str) -> Option<usize> {
    let number = |text: &str| text.trim().replace('_', "").parse::<usize>().ok();
    let last = expression.rsplit(['{', '=']).next()?.trim_end_matches([' ', '}']);
    match last.split_once("<<") {
        Some((left, right)) => number(left)?.checked_shl(number(right)?.try_into().ok()?),
        None => last.split('*').map(number).try_fold(1_usize, |product, one| product.checked_mul(one?)),
    }
}

/// Returns a number at `threshold`, one below or one above, as `number` says. Sometimes it is that
/// of a class behind the threshold, or what is left of it beside a header.
pub fn near(threshold: usize, number: usize) -> usize {
    let (number, side) = (number / 3, number % 3);
    let (number, quarters) = (number / 16, number % 16);
    let class = if threshold >= CLASSES_FROM { threshold / 4 * quarters.saturating_sub(12) } else { 0 };
    let header = HEADERS.get(number % (3 * HEADERS.len())).copied().unwrap_or(0);
    (threshold + class).saturating_sub(header) + side - usize::from(threshold + class > header)
}

/// Returns a number [`near`] one of the thresholds.
pub fn any(number: usize) -> usize {
    let all = all();
    near(all[number % all.len()], number / all.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_one_below_and_one_above() {
        for threshold in [64, 512, 16 << 10] {
            let near: Vec<_> = (0..3 * 16 * 18).map(|number| near(threshold, number)).collect();
            for wanted in [threshold, threshold - 1, threshold + 1, threshold - 17, 3 * threshold / 2 + 1] {
                assert!(near.contains(&wanted), "{wanted} of {threshold}");
            }
        }
        assert_eq!([0, 1, 2].map(|number| near(1, 3 * 16 * 6 + number)), [0, 1, 2]);
    }

    #[test]
    fn values_are_those_of_the_expressions() {
        for (expression, expected) in [
            ("1_000", Some(1000)),
            ("16 << 10", Some(16 << 10)),
            ("2 * 32", Some(64)),
            ("1..=64 << 10", Some(64 << 10)),
            ("if cfg!(loom) { 2 } else { 512 }", Some(512)),
            ("size_of::<Block>()", None),
            ("OTHER / 2", None),
        ] {
            assert_eq!(value(expression), expected, "{expression}");
        }
    }

    #[test]
    fn the_list_has_the_thresholds_of_the_sources() {
        for known in [64, 512, 1024, 16 << 10, 128 << 10] {
            assert!(all().contains(&known), "{known}");
        }
    }
}

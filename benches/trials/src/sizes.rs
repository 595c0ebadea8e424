//! Frequencies of sizes at random, for programs that draw them with generators of their own.

/// Returns one of `count` ranks, of which the k-th has weight 1 / k. `random` gives a number from 0
/// on and below 1.
pub fn zipf(count: usize, random: impl FnOnce() -> f64) -> usize {
    let weight = |rank: usize| 1.0 / (rank + 1) as f64;
    let mut rest = random() * (0..count).map(weight).sum::<f64>();
    let is_it = |rank: &usize| {
        rest -= weight(*rank);
        rest <= 0.0
    };
    (0..count - 1).find(is_it).unwrap_or(count - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_the_most_frequent() {
        let ranks: Vec<usize> = (0..1100).map(|draw| zipf(3, || f64::from(draw) / 1100.0)).collect();
        let of = |rank| ranks.iter().filter(|&&found| found == rank).count();
        assert!(of(0).abs_diff(600) <= 1 && of(1).abs_diff(300) <= 1 && of(2).abs_diff(200) <= 1);
    }
}

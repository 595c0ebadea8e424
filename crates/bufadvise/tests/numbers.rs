//! Numbers that stand for many, and numbers as people read them.
#![allow(missing_docs, reason = "a test")]

use bufadvise::measure::statistics::quantile;
use bufadvise::number::{exact_memory, memory, three_digits, tick, time};

#[test]
fn units_follow_the_size() {
    assert_eq!(time(4.706), "4.71 ns");
    assert_eq!(time(12_340.0), "12.3 µs");
    assert_eq!(time(999.6), "1000 ns");
    assert_eq!(time(2.5e9), "2.50 s");
    assert_eq!(memory(1 << 20), "1.0 MiB");
    assert_eq!(exact_memory(14 << 20), "14 MiB");
    assert_eq!(exact_memory((3 << 20) + 4096), "3076 KiB");
    assert_eq!(exact_memory(1_522_693), "1522693 B");
    assert_eq!(three_digits(0.249), "0.25");
    assert_eq!(tick("10.0 ns"), "10 ns");
    assert_eq!(tick("300 µs"), "300 µs");
    assert_eq!(tick("0.50"), "0.5");
}

#[test]
fn quantiles_interpolate() {
    let sorted = [1.0, 2.0, 3.0, 4.0, 5.0];
    assert_eq!([0.5, 0.1, 1.0].map(|share| quantile(&sorted, share)), [3.0, 1.4, 5.0]);
    assert!(quantile(&[], 0.5).is_nan());
}

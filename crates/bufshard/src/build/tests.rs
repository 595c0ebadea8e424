//! Tests what the checked settings promise of requests.

use super::*;

fn settings(builder: Builder) -> Settings {
    builder.check(&PageSource::System).expect("settings are right")
}

/// The most that a request takes of the budget.
fn total(settings: &Settings, bytes: usize) -> usize {
    settings.total(settings.layout_for(bytes))
}

#[test]
fn the_largest_request_is_exact() {
    for alignment in [1, 16, 32, 64, 256, 2048, 4096, 1 << 16] {
        for (budget, smallest) in (1..96)
            .map(|pages| pages * 1024)
            .flat_map(|budget| [(budget, 1), (budget, 5000), (budget, 50_000)])
        {
            let builder = Builder::new().alignment(alignment).smallest_pooled(smallest);
            let settings = match builder.max_bytes(budget).check(&PageSource::System) {
                Ok(settings) => settings,
                Err(error) => {
                    let setting = "max_bytes";
                    assert_eq!(error, ConfigError::TooSmall { setting, requested: budget, least: 4096 });
                    assert!(budget < 4096, "{budget} bytes, aligned to {alignment}");
                    continue;
                }
            };
            let limit = settings.max_capacity();
            for bytes in (1..=budget).step_by(61).chain([limit, limit + 1]) {
                let fits = total(&settings, bytes) <= budget;
                assert_eq!(fits, bytes <= limit, "{bytes} of {budget} bytes, aligned to {alignment}");
            }
        }
    }
}

#[test]
fn classes_from_a_quarter_of_a_kibibyte_on_start_at_lines() {
    for (alignment, small, large) in [(1, 16, 64), (16, 16, 64), (32, 32, 64), (64, 64, 64), (256, 256, 256)]
    {
        let settings = settings(Builder::new().alignment(alignment));
        for class in 0..MAX_CLASSES {
            let bytes = class::bytes_of(class);
            let expected = if bytes < 256 { small } else { large };
            assert_eq!(settings.alignment_of(bytes), expected, "{bytes} bytes, aligned to {alignment}");
        }
    }
}

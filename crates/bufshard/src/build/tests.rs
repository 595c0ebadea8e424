//! Tests what the checked settings promise of requests.

use super::*;

fn settings(builder: Builder) -> Settings {
    builder.check(builder.mapped()).expect("settings are right")
}

/// The most that a request takes of the budget.
fn total(settings: &Settings, bytes: usize) -> usize {
    let class = class::class_of(bytes);
    if settings.is_pooled(class) {
        settings.layout_of(class as u8, class::bytes_of(class)).coloured(usize::MAX).total()
    } else {
        settings.layout_of(NO_CLASS, bytes).total()
    }
}

#[test]
fn the_largest_request_is_exact() {
    // What is around one byte that is not pooled.
    let around = |alignment: usize| match alignment {
        4096 => 64,
        _ if size_of::<usize>() == 8 => 32 + alignment.max(16) - 16,
        _ => 32 + alignment.max(16) - 8,
    };
    for alignment in [1, 16, 32, 64, 256, 4096] {
        for (budget, smallest) in (1..800).flat_map(|budget| [(budget, 1), (budget, 100)]) {
            let builder = Builder::new().alignment(alignment).smallest_pooled(smallest);
            let settings = match builder.max_bytes(budget).check(None) {
                Ok(settings) => settings,
                Err(error) => {
                    // What a request for one byte takes, and not a byte more.
                    let least = around(alignment) + 1;
                    let setting = "max_bytes";
                    assert_eq!(error, ConfigError::TooSmall { setting, requested: budget, least });
                    assert!(budget < least, "{budget} bytes, aligned to {alignment}");
                    continue;
                }
            };
            let limit = settings.max_capacity();
            for bytes in 1..=budget {
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

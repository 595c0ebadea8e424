//! Logarithmic scales, and labels that keep apart.

/// A logarithmic scale.
#[derive(Debug, Clone, Copy)]
pub struct Log {
    /// The value at the low end; over zero.
    pub low: f64,
    /// The value at the high end.
    pub high: f64,
}

/// A line across the chart.
#[derive(Debug, Clone, Copy)]
pub struct Tick {
    /// Where it is.
    pub value: f64,
    /// A power of ten.
    pub major: bool,
    /// Whether there is room for its value.
    pub labelled: bool,
}

impl Log {
    /// Returns a scale that all values fit on, with a little room; `None` for no values.
    #[must_use]
    pub fn around(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = values
            .filter(|&value| value > 0.0 && value.is_finite())
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        (high > 0.0).then(|| Self { low: low / 1.15, high: high * 1.15 })
    }

    /// Returns where a value lies, 0 at the low end, 1 at the high end.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        ((value / self.low).ln() / (self.high / self.low).ln()).clamp(0.0, 1.0)
    }

    /// Powers of ten and their multiples, on an axis of `length` pixels. As many have labels as
    /// have room for one, which takes `label` pixels.
    #[must_use]
    pub fn ticks(&self, length: f64, label: f64) -> Vec<Tick> {
        const LABELS: [&[u32]; 4] = [&[1, 2, 3, 5, 7], &[1, 2, 5], &[1, 3], &[1]];
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let all: Vec<(u32, f64)> = (first..=last)
            .flat_map(|power| (1..10_u32).map(move |digit| (digit, f64::from(digit) * 10_f64.powi(power))))
            .filter(|&(_, value)| (self.low..=self.high).contains(&value))
            .collect();
        let fits = |digits: &&&[u32]| {
            let places: Vec<f64> = all
                .iter()
                .filter(|(digit, _)| digits.contains(digit))
                .map(|&(_, value)| self.place(value))
                .collect();
            !places.is_empty() && places.windows(2).all(|two| (two[1] - two[0]) * length >= label)
        };
        let labels = LABELS.iter().find(fits).copied().unwrap_or(&[1]);
        all.iter()
            .map(|&(digit, value)| Tick { value, major: digit == 1, labelled: labels.contains(&digit) })
            .collect()
    }
}

/// Moves sorted places apart until neighbours are at least `gap` from each other, within the bounds
/// as far as they allow.
#[must_use]
pub fn apart(places: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut moved = places.to_vec();
    for _ in 0..200 {
        for index in 1..moved.len() {
            let lack = gap - (moved[index] - moved[index - 1]);
            if lack > 0.0 {
                moved[index - 1] -= lack / 2.0;
                moved[index] += lack / 2.0;
            }
        }
        if let Some(first) = moved.first_mut() {
            *first = first.max(top);
        }
        if let Some(last) = moved.last_mut() {
            *last = last.min(bottom);
        }
    }
    // Whatever is too near still, at the upper bound, gives way downwards.
    for index in 1..moved.len() {
        moved[index] = moved[index].max(moved[index - 1] + gap);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart() {
        let moved = apart(&[100.0, 101.0, 102.0, 300.0], 15.0, 0.0, 400.0);
        assert!(moved.windows(2).all(|pair| pair[1] - pair[0] > 14.5), "{moved:?}");
        assert!((moved[3] - 300.0).abs() < 1.0, "nobody pushes the last one: {moved:?}");
        let crowded = apart(&[5.0; 20], 15.0, 0.0, 400.0);
        assert!(crowded.windows(2).all(|pair| pair[1] - pair[0] > 14.9), "{crowded:?}");
    }

    #[test]
    fn scales_hold_their_values() {
        let scale = Log::around([3.0, 700.0].into_iter()).unwrap();
        assert!(scale.place(3.0) > 0.0 && scale.place(700.0) < 1.0);
        let labelled = |length| -> Vec<f64> {
            let ticks = scale.ticks(length, 40.0).into_iter();
            ticks.filter(|tick| tick.labelled).map(|tick| tick.value).collect()
        };
        assert_eq!(labelled(600.0), [5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert_eq!(labelled(150.0), [10.0, 100.0], "in less room, fewer labels");
        assert!(Log::around([].into_iter()).is_none());
    }
}

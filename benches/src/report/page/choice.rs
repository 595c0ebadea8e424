//! What the tables show: times and ratios to one contestant, or another measure.

use std::fmt::Write;

use maud::{Markup, html};

use super::{BASELINE, Kind, Results, view};
use crate::harness::record::Record;
use crate::report::measures::{MEASURES, Measure};

/// A position of the switch.
pub(super) enum Choice<'a> {
    /// Times, and ratios to those of this contestant.
    Times(&'a str),
    /// Another measure.
    Measure(&'static Measure),
}

impl Choice<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Times(name) => name,
            Self::Measure(measure) => measure.name,
        }
    }

    /// The class of what is shown with it.
    pub(super) fn class(&self) -> String {
        format!("show-{}", self.name().replace(' ', "-"))
    }
}

/// The positions that the results have something for: the baseline first, then our strategies, then
/// other measures.
pub(super) fn all(results: &Results) -> Vec<Choice<'_>> {
    let strategies = view::names(results, Kind::Strategy);
    let any = |measure: &&Measure| results.cells.iter().any(|record| (measure.show)(record).is_some());
    let measures = MEASURES.iter().filter(any).map(Choice::Measure);
    std::iter::once(BASELINE).chain(strategies).map(Choice::Times).chain(measures).collect()
}

/// A cell's time in times of that of `reference` in the same rounds; none for the reference itself.
pub(super) fn ratio(record: &Record, reference: &str) -> Option<f64> {
    let ratio = match reference {
        BASELINE => record.to_vec,
        strategy => record.strategies_to_this.get(strategy).map(|ratio| 1.0 / ratio),
    };
    ratio.filter(|_| record.contestant != reference)
}

/// The rules that show what is chosen.
pub(super) fn style(choices: &[Choice<'_>]) -> String {
    let mut rules = String::new();
    for choice in choices {
        let class = choice.class();
        let _ = writeln!(rules, "body:has(#{class}:checked) .{class} {{ display: block; }}");
    }
    rules
}

/// The switch.
pub(super) fn switch(choices: &[Choice<'_>]) -> Markup {
    let button = |choice: &Choice<'_>, checked: bool| {
        let class = choice.class();
        html! {
            label { input type="radio" name="show" id=(class) checked[checked]; (choice.name()) }
        }
    };
    let (times, measures): (Vec<_>, Vec<_>) =
        choices.iter().partition(|choice| matches!(choice, Choice::Times(_)));
    html! {
        fieldset class="switch" {
            legend { "What the tables show" }
            b { "Times, and ratios to" }
            @for (index, choice) in times.into_iter().enumerate() { (button(choice, index == 0)) }
            @if !measures.is_empty() { b { "or" } }
            @for choice in measures { (button(choice, false)) }
        }
    }
}

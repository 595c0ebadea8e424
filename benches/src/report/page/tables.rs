//! The tables of one workload, one for each position of the switch.

use maud::{Markup, html};

use super::choice::{Choice, ratio};
use super::{Results, is_ours, plain, scroll, view};
use crate::drawing::number;
use crate::harness::contestant::FLOOR;
use crate::harness::record::{Outcome, Record, Row, Timing};
use crate::report::measures::Measure;

/// What the switch shows of a workload at one of its positions.
pub(super) fn view(results: &Results, workload: &str, rows: &[&Row], choice: &Choice<'_>) -> Markup {
    html! {
        div class={ "view " (choice.class()) } {
            @match choice {
                Choice::Times(reference) => (times(results, workload, rows, reference)),
                Choice::Measure(measure) => (measured(results, workload, rows, measure)),
            }
        }
    }
}

/// A ground that is green below a ratio of one and red above, the more the farther.
pub(super) fn ground(ratio: f64) -> String {
    let strength = (ratio.log2().abs() / 3.0).min(1.0) * 0.45;
    let colour = if ratio < 1.0 { "good" } else { "bad" };
    format!("background: rgba(var(--{colour}), {strength:.2})")
}

/// A ratio on its ground, for the legend.
pub(super) fn swatch(ratio: f64) -> Markup {
    html! { span class="swatch" style=(ground(ratio)) { (number::ratio(ratio)) } }
}

/// A cell with a ratio on its ground.
pub(super) fn tinted(ratio: f64) -> Markup {
    html! { td style=(ground(ratio)) { (number::ratio(ratio)) } }
}

fn times(results: &Results, workload: &str, rows: &[&Row], reference: &str) -> Markup {
    let names = view::by_speed(results, rows);
    let any = names.iter().any(|name| {
        rows.iter()
            .any(|row| results.cell(&row.id, name).is_some_and(|cell| ratio(cell, reference).is_some()))
    });
    let title = if any {
        format!("Time per operation, and ratio to {reference}")
    } else {
        format!("Time per operation; {reference} is not in this workload")
    };
    let table = html! {
        table {
            thead { (heads(results, &names)) }
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" { (row.parameters) }
                        @let winner = view::winner(results, &row.id);
                        @for name in &names { (time(results.cell(&row.id, name), reference, winner == Some(*name))) }
                    }
                }
            }
        }
    };
    html! { h3 { (title) } (scroll(&format!("{workload}: {title}"), &table)) }
}

/// The row of the contestants' names.
fn heads(results: &Results, names: &[&str]) -> Markup {
    html! {
        tr {
            th {}
            @for name in names { th scope="col" class=[is_ours(results, name).then_some("ours")] { (name) } }
        }
    }
}

fn time(record: Option<&Record>, reference: &str, wins: bool) -> Markup {
    let Some(record) = record else { return html! { td {} } };
    match &record.outcome {
        Outcome::Timed(timing) => {
            let ratio = ratio(record, reference);
            let style = ratio.filter(|_| record.contestant != FLOOR).map(ground);
            html! {
                td class=[wins.then_some("win")] style=[style] {
                    span title=(details(timing)) { (number::time(timing.median)) }
                    @if let Some(ratio) = ratio { small { (number::ratio(ratio)) } }
                }
            }
        }
        Outcome::Checked => html! { td { "right" } },
        Outcome::Unsupported { reason } => html! { td class="none" title=(plain(reason)) { "–" } },
        Outcome::Wrong { .. } => failed(&record.outcome, "wrong bytes"),
        Outcome::Crashed { .. } => failed(&record.outcome, "crashed"),
        Outcome::Hung { .. } => failed(&record.outcome, "hung"),
    }
}

/// What a time was formed of.
fn details(timing: &Timing) -> String {
    let note = timing.note.as_deref().map_or_else(String::new, |note| format!("; {note}"));
    let alone = if timing.alone { "; in a process of its own" } else { "" };
    format!(
        "p10 {}, p90 {}, {} rounds of {} operations{note}{alone}",
        number::time(timing.p10),
        number::time(timing.p90),
        timing.rounds,
        timing.operations
    )
}

fn failed(outcome: &Outcome, word: &str) -> Markup {
    html! { td class="fail" title=(plain(&outcome.explain())) { (word) } }
}

fn measured(results: &Results, workload: &str, rows: &[&Row], measure: &Measure) -> Markup {
    let shown = |row: &Row, name: &str| results.cell(&row.id, name).and_then(measure.show);
    let title = capitalised(measure.title);
    let names: Vec<&str> = view::by_speed(results, rows)
        .into_iter()
        .filter(|name| rows.iter().any(|row| shown(row, name).is_some()))
        .collect();
    if names.is_empty() {
        return html! { h3 { (title) } p class="soft" { "This workload has no figures of that kind." } };
    }
    let table = html! {
        table {
            thead { (heads(results, &names)) }
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" { (row.parameters) }
                        @for name in &names {
                            @match shown(row, name) {
                                Some(text) => td { (text) },
                                None => td class="none" { "–" },
                            }
                        }
                    }
                }
            }
        }
    };
    html! { h3 { (title) } (scroll(&format!("{workload}: {title}"), &table)) }
}

/// With a capital at the start.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

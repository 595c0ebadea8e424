//! The verdict: where our strategies win and lose.

use maud::{Markup, html};

use super::choice::{Choice, ratio};
use super::tables::{ground, tinted};
use super::{BASELINE, Kind, Results, is_ours, scroll, view};
use crate::drawing::number;
use crate::harness::record::Row;

/// The section.
pub(super) fn verdict(results: &Results, choices: &[Choice<'_>]) -> Markup {
    html! {
        section aria-labelledby="verdict" {
            h2 id="verdict" { "Where our strategies win and lose" }
            div class="cards" {
                @for strategy in view::names(results, Kind::Strategy) {
                    @let (rows, fastest, faster) = view::score(results, strategy);
                    div class="card" {
                        b { (strategy) }
                        "faster than " (BASELINE) " in " (faster) " of " (rows) " rows" br;
                        "fastest of all in " (fastest)
                    }
                }
            }
            (losses(results))
            @for choice in choices {
                @if let Choice::Times(reference) = choice {
                    div class={ "view " (choice.class()) } { (standings(results, reference)) }
                }
            }
        }
    }
}

fn losses(results: &Results) -> Markup {
    let losses = view::losses(results);
    if losses.is_empty() {
        return html! { p { "There is no row in which a control or a peer is clearly faster." } };
    }
    let time = |row: &Row, name: &str| results.median(&row.id, name).map(number::time).unwrap_or_default();
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { "row" }
                    @for head in ["strategy", "its time", "fastest", "its time", "times"] { th scope="col" { (head) } }
                }
            }
            tbody {
                @for loss in &losses {
                    tr {
                        th scope="row" { (loss.row.workload) " " (loss.row.parameters) }
                        td { (loss.strategy) }
                        td { (time(loss.row, loss.strategy)) }
                        td { (loss.faster) }
                        td { (time(loss.row, loss.faster)) }
                        (tinted(loss.times))
                    }
                }
            }
        }
    };
    html! {
        details {
            summary {
                "A control or a peer is faster than a strategy by more than 5 %, and the spreads do not overlap: "
                (losses.len()) (if losses.len() == 1 { " time" } else { " times" })
            }
            (scroll("Losses, worst first", &table))
        }
    }
}

/// Everybody against one contestant, over all rows.
fn standings(results: &Results, reference: &str) -> Markup {
    let standings = view::standings(results, |record| ratio(record, reference));
    if standings.is_empty() {
        return html! {};
    }
    let title = format!("Times of all contestants in times of {reference}, over all rows that both are in");
    let at = |(row, ratio): (&Row, f64)| {
        html! { (tinted(ratio)) td class="text" { (row.workload) " " (row.parameters) } }
    };
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { "contestant" }
                    th scope="col" { "rows" } th scope="col" { "mean" }
                    th scope="col" { "best" } th scope="col" class="text" { "at" }
                    th scope="col" { "worst" } th scope="col" class="text" { "at" }
                }
            }
            tbody {
                @for standing in standings {
                    tr {
                        th scope="row" class=[is_ours(results, standing.contestant).then_some("ours")] { (standing.contestant) }
                        td { (standing.rows) }
                        td style=(ground(standing.mean)) { (number::ratio(standing.mean)) }
                        (at(standing.best)) (at(standing.worst))
                    }
                }
            }
        }
    };
    html! { h3 { (title) } (scroll(&title, &table)) }
}

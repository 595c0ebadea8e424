//! What settings are worth: the contestants without any.

use maud::{Markup, html};

use super::tables::{ground, tinted};
use super::{Results, marked, scroll};
use crate::drawing::number;
use crate::harness::record::Row;
use crate::report::defaults::{self, SLOW, Slow, Summary};
use crate::report::texts;

/// The section; nothing where there are no defaults.
pub(super) fn section(results: &Results) -> Markup {
    let summaries = defaults::summaries(results);
    if summaries.is_empty() {
        return html! {};
    }
    let slow = defaults::slow(results);
    html! {
        section aria-labelledby="defaults" {
            h2 id="defaults" { "Defaults" }
            p { (marked(texts::DEFAULTS)) }
            (scroll("Defaults, all rows together", &in_short(&summaries)))
            h3 { "Rows in which a default takes more than " (SLOW) " times as long, the worst first" }
            @if slow.is_empty() { p { "There are none." } }
            @else { (scroll("Slow defaults, worst first", &worst(&slow))) }
            details {
                summary { "The ratio of each default in every row" }
                (scroll("Time without settings to that with, by row", &every(results)))
            }
        }
    }
}

fn name(row: &Row) -> Markup {
    html! { (row.workload) " " (row.parameters) }
}

fn in_short(summaries: &[Summary<'_>]) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "without settings" }
                    th scope="col" { "rows" } th scope="col" { "mean" }
                    th scope="col" { "more than " (SLOW) " times" }
                    th scope="col" { "worst" } th scope="col" {}
                }
            }
            tbody {
                @for line in summaries {
                    tr {
                        th scope="row" { (line.name) }
                        td { (line.rows) }
                        (tinted(line.mean))
                        td { (line.slow) }
                        (tinted(line.worst.1)) td class="text" { (name(line.worst.0)) }
                    }
                }
            }
        }
    }
}

fn worst(slow: &[Slow<'_>]) -> Markup {
    let heads = [
        "without settings",
        "times",
        "its time",
        "with settings",
        "fallbacks",
        "control or peer",
        "times that",
    ];
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "row" }
                    @for head in heads { th scope="col" { (head) } }
                }
            }
            tbody {
                @for slow in slow {
                    tr {
                        th scope="row" { (name(slow.row)) }
                        td { (slow.record.contestant) }
                        (tinted(slow.times))
                        td { (number::time(slow.time)) }
                        td { (number::time(slow.tuned)) }
                        @match slow.record.fallbacks {
                            Some(share) => td { (number::share(share)) },
                            None => td class="none" { "–" },
                        }
                        @match slow.rival {
                            Some((rival, times)) => { td { (rival) } (tinted(times)) },
                            None => { td class="none" { "–" } td class="none" { "–" } },
                        }
                    }
                }
            }
        }
    }
}

fn every(results: &Results) -> Markup {
    let columns = defaults::columns(results);
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "row" }
                    @for column in &columns { th scope="col" { (column.name) } }
                }
            }
            tbody {
                @for row in defaults::rows(results) {
                    tr {
                        th scope="row" { (name(row)) }
                        @for column in &columns {
                            @match results.cell(&row.id, &column.name).and_then(|record| record.to_tuned) {
                                Some(ratio) => td class=[(ratio > SLOW).then_some("slow")] style=(ground(ratio)) {
                                    (number::ratio(ratio))
                                },
                                None => td class="none" { "–" },
                            }
                        }
                    }
                }
            }
        }
    }
}

//! `index.html`: one page with everything in it, to look at.
//!
//! One switch at the top says what the tables of all workloads show. It is a group of radio
//! buttons, and a rule of the style sheet for each: there is no script.

mod choice;
mod defaults;
mod tables;
mod verdict;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart::Chart;
use super::{facts, kind, reasons, texts, view};
use crate::drawing::{colours, svg};
use crate::harness::Kind;
use crate::harness::contestant::BASELINE;
use crate::harness::record::Results;

/// The page.
#[must_use]
pub fn page(results: &Results, charts: &[Chart]) -> String {
    let choices = choice::all(results);
    let style = format!("{}{}{}", include_str!("style.css"), choice::style(&choices), colours::style());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "bufworks benchmark matrix" }
                style { (PreEscaped(style)) }
            }
            body {
                (head(results))
                (choice::switch(&choices))
                main {
                    (verdict::verdict(results, &choices))
                    (defaults::section(results))
                    @for chart in charts.iter().filter(|chart| chart.workload.is_empty()) { (figure(chart)) }
                    @for (workload, rows) in view::workloads(results) {
                        section aria-labelledby=(workload) {
                            h2 id=(workload) { (workload) }
                            p { (marked(texts::about(workload))) }
                            @for chart in charts.iter().filter(|chart| chart.workload == workload) { (figure(chart)) }
                            @for choice in &choices { (tables::view(results, workload, &rows, choice)) }
                        }
                    }
                    (missing(results))
                    (contestants(results))
                }
            }
        }
    };
    page.into_string() + "\n"
}

/// Text in which what stands between backticks is code.
fn marked(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// The same for places that take no markup.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

fn head(results: &Results) -> Markup {
    let defaults = (!super::defaults::columns(results).is_empty()).then_some(("defaults", "defaults"));
    let workloads = view::workloads(results).into_iter().map(|(workload, _)| (workload, workload));
    let more = [("missing", "cells without times"), ("contestants", "contestants")];
    let links = defaults.into_iter().chain(workloads).chain(more);
    html! {
        header {
            h1 { "bufworks benchmark matrix" }
            p class="soft" { (results.host.cpu) ", " (results.host.cores) " cores; " (results.host.date) }
            nav aria-label="Sections" {
                ul { @for (target, name) in links { li { a href={ "#" (target) } { (name) } } } }
            }
        }
        section aria-labelledby="reading" {
            h2 id="reading" { "How to read this page" }
            (legend(results))
            p class="soft" { (marked(texts::METHOD)) }
            dl { @for (name, value) in facts(results) { dt { (name) } dd { (value) } } }
        }
    }
}

/// What marks, stars and grounds mean.
fn legend(results: &Results) -> Markup {
    let mark = |class, hollow| PreEscaped(svg::mark(class, hollow));
    html! {
        ul class="legend" aria-label="Legend" {
            li { span class="star" { "★" } "the fastest pool of the row" }
            li { (tables::swatch(0.5)) "faster than the contestant that the switch names" }
            li { (tables::swatch(2.0)) "slower than that" }
            li { "– not possible, or not measured" }
            li { (mark("s0", false)) (mark("s1", false)) "our strategies, in orange at the head of a table" }
            li { (mark("v0", false)) "a strategy with other settings" }
            @if !super::defaults::columns(results).is_empty() {
                li { span { code { "-default" } " behind a name: without settings; in tables only" } }
            }
            li { (mark("c1", false)) "a control" }
            li { (mark(svg::FLOOR, true)) "the floor: no bookkeeping at all" }
            li { (mark("p0", false)) (mark("p3", false)) "a published crate" }
            li { "A line through a mark: from the 10th to the 90th percentile" }
        }
        p class="soft" {
            "Each contestant has one colour in all charts that show it. Point at a mark or a time for its numbers. \
             The switch below says what the tables show."
        }
    }
}

fn figure(chart: &Chart) -> Markup {
    html! {
        figure {
            div class="wide" { (PreEscaped(&chart.wide)) }
            div class="narrow" { (PreEscaped(&chart.narrow)) }
        }
    }
}

/// A table that scrolls by itself, with the keyboard too.
fn scroll(label: &str, table: &Markup) -> Markup {
    html! { div class="scroll" tabindex="0" role="region" aria-label=(label) { (table) } }
}

fn missing(results: &Results) -> Markup {
    let lines = reasons(results);
    html! {
        h2 id="missing" { "Cells without times" }
        @if lines.is_empty() { p { "None." } }
        ul {
            @for (contestant, outcome, cases) in lines {
                li { b { (contestant) } " at " (cases.join(", ")) ": " (marked(&outcome.explain())) }
            }
        }
    }
}

fn contestants(results: &Results) -> Markup {
    html! {
        h2 id="contestants" { "Contestants" }
        ul {
            @for column in &results.contestants {
                li { b { (column.name) } " (" (kind(column.kind)) "): " (marked(&column.idiom)) }
            }
        }
    }
}

/// Whether a contestant is one of our strategies.
fn is_ours(results: &Results, name: &str) -> bool {
    view::names(results, Kind::Strategy).any(|strategy| strategy == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::record::fixture::{column, results, timed};
    use crate::harness::record::{Outcome, Record};

    fn sample() -> String {
        let mut peer = column("peer", Kind::Peer);
        peer.idiom = "`Vec::<u8>` & more".into();
        let refused = Outcome::Unsupported { reason: "no `Send`".into() };
        let mut results = results(
            vec![column("slot", Kind::Strategy), column("vec", Kind::Control), peer],
            vec![
                timed("64 B", "slot", 2.0, false),
                timed("64 B", "vec", 8.0, false),
                timed("64 B", "peer", 4.0, false),
                Record::new("1 KiB", "peer", refused),
            ],
        );
        results.compare();
        let charts = crate::report::chart::all(&results);
        page(&results, &charts)
    }

    #[test]
    fn code_is_marked_and_everything_is_escaped() {
        let page = sample();
        assert!(!page.contains('`'), "no literal backticks");
        assert!(page.contains("<code>Vec::&lt;u8&gt;</code> &amp; more"), "{page}");
        assert!(page.contains("title=\"no Send\""), "{page}");
    }

    #[test]
    fn defaults_have_a_part_of_their_own() {
        assert!(!sample().contains("id=\"defaults\""), "there are none");
        let results = crate::report::defaults::tests::sample();
        let page = page(&results, &crate::report::chart::all(&results));
        assert!(page.contains("<a href=\"#defaults\">"), "{page}");
        let start = page.find("id=\"defaults\"").expect("the part on defaults");
        let part = &page[start..start + page[start..].find("</section>").expect("its end")];
        let worst = part.find("<td>10.0 ns</td><td>1.00 ns</td>").expect("the worst");
        let second = part.find("<td>6.00 ns</td><td>2.00 ns</td>").expect("the second");
        assert!(worst < second, "worst first: {part}");
        assert_eq!(part.matches("class=\"slow\"").count(), 2, "in the table of all ratios");
        assert!(part.contains("50.0 %") && part.contains("<td>peer</td>"), "{part}");
        assert!(page.contains("without settings; in tables only"), "{page}");
        assert_eq!(page.matches("type=\"radio\"").count(), 3 + 1, "vec, slot, ring, and fallbacks");
    }

    #[test]
    fn a_row_has_its_ratios_to_each_choice() {
        let page = sample();
        assert_eq!(page.matches("type=\"radio\"").count(), 2, "vec and slot");
        let section = &page[page.find("id=\"reuse\"").expect("the workload")..];
        let view = |id: &str| {
            let start = section.find(&format!("<div class=\"view {id}\">")).expect("a view");
            let end = section[start..].find("</table>").expect("a table");
            &section[start..start + end]
        };
        let cells = |id| -> Vec<&str> {
            view(id).split("<small>").skip(1).map(|cell| cell.split('<').next().unwrap_or_default()).collect()
        };
        assert!(view("show-slot").contains("<th scope=\"row\">64 B</th>"), "{section}");
        assert_eq!(cells("show-vec"), ["0.25", "0.50"], "slot and the peer");
        assert_eq!(cells("show-slot"), ["2.00", "4.00"], "the peer and vec");
    }
}

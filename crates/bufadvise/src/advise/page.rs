//! The advice as a page: one file with all of it, to look at.

use comfy_table::{Row, Table};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::record::Advice;
use super::{memory_chart, render_sites, render_text, table};

/// Returns the page. The pictures are time against memory, and memory over time.
pub(super) fn page(advice: &Advice, pictures: &[&str; 2]) -> String {
    let [trade_off, memory] = pictures;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "bufadvise: " (advice.name) }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                header {
                    h1 { (advice.name) }
                    p class="answer" { (marked(&render_text::answer(advice))) }
                    p { (marked(&render_text::cost(advice))) }
                    p { (render_text::headline(advice)) }
                }
                main {
                    pre { (advice.code) }
                    h2 { "Why" }
                    ul {
                        @for reason in &advice.why { li { (marked(reason)) } }
                        li { (marked(&render_text::sure(advice))) }
                    }
                    h2 { "The trade-off" }
                    p { "Each row takes less memory than the one above it, and more time." }
                    (rows(&table::front(advice)))
                    figure class="wide" { (PreEscaped(trade_off)) }
                    h2 { "Memory over time" }
                    p { (marked(&memory_chart::sentence(&advice.memory))) }
                    figure class="wide" { (PreEscaped(memory)) }
                    (sites(advice))
                    h2 { "All candidates" }
                    (rows(&table::all(advice)))
                    ul { @for line in table::LEGEND.lines() { li { (marked(line.trim_start_matches("- "))) } } }
                }
            }
        }
    };
    page.into_string() + "\n"
}

/// Returns the largest call sites of a heap recording.
fn sites(advice: &Advice) -> Markup {
    html! {
        @if !advice.call_sites.is_empty() {
            h2 { "The call sites that request most" }
            p { "Each was replayed by itself." }
            ol {
                @for verdict in &advice.call_sites {
                    li {
                        pre { (verdict.call_site.lines()) }
                        ul { @for line in render_sites::lines_of(verdict) { li { (marked(&line)) } } }
                    }
                }
            }
        }
    }
}

/// Returns a table of the terminal as one of the page. The row of the choice begins with an arrow.
fn rows(table: &Table) -> Markup {
    html! {
        div class="wide" {
            table {
                @if let Some(header) = table.header() {
                    thead { tr { @for cell in cells(header) { th scope="col" { (cell) } } } }
                }
                tbody {
                    @for row in table.row_iter() {
                        tr class=[cells(row).next().filter(|name| name.starts_with('→')).map(|_| "chosen")] {
                            @for cell in cells(row) { td { (cell.trim()) } }
                        }
                    }
                }
            }
        }
    }
}

fn cells(row: &Row) -> impl Iterator<Item = String> {
    row.cell_iter().map(comfy_table::Cell::content)
}

/// Returns text in which what is between backticks is code.
fn marked(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

//! The candidates as rows: all of them, and the trade-off.

use std::io::IsTerminal;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Attribute, Cell, CellAlignment, Table};

use super::record::{Advice, Entry};
use super::words::{percent, processor};
use crate::drawing::number::{exact_memory, three_digits, time};
use crate::measure::tail::Tail;

/// What the columns of [`all`] mean.
pub(crate) const LEGEND: &str = "\
- candidate: a strategy with its settings, as `AnyBuilder` reads them. An arrow marks the choice. `heap` and `vec` are no pools.
- time: what a request and its release take of all threads together, without their waits; the median over the processes.
- 10 % to 90 %: the times that a tenth and nine tenths of the processes stayed below.
- processor: the share of one processor that this is, at the recorded rate of requests.
- p50, p99, p99.9: what 50 %, 99 % and 99.9 % of single requests stayed below, with their releases; the clock's own cost is in it.
- memory: the pages that the candidate made resident at most, in a replay in the recorded order, by as many threads.
- reserved: the address space that its pools held at most, touched or not, and the buffers of the heap.
- refused: the share of the requests for which a pool had no room; in brackets at twice the connections.
- apart: the share of the requests that are allocations of their own by these settings.
- stage: how far a candidate came; those of stage 3 were timed longest.";

fn empty(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    if !std::io::stdout().is_terminal() {
        table.force_no_tty();
    }
    table.set_header(header);
    table
}

fn name(entry: &Entry, advice: &Advice) -> Cell {
    let chosen = entry.candidate == advice.pick().candidate;
    let name = Cell::new(format!("{} {}", if chosen { "→" } else { " " }, entry.candidate));
    if chosen { name.add_attribute(Attribute::Bold) } else { name }
}

fn right(cells: impl IntoIterator<Item = String>) -> impl Iterator<Item = Cell> {
    cells.into_iter().map(|text| Cell::new(text).set_alignment(CellAlignment::Right))
}

/// Returns all candidates, those that can be chosen first, by stage and time.
pub(crate) fn all(advice: &Advice) -> Table {
    let mut table = empty(&[
        "candidate",
        "time",
        "10 % to 90 %",
        "processor",
        "p50",
        "p99",
        "p99.9",
        "memory",
        "reserved",
        "refused",
        "apart",
        "stage",
    ]);
    let mut order: Vec<&Entry> = advice.entries.iter().collect();
    order.sort_by(|one, other| {
        let group = |entry: &Entry| (!entry.serves_all(), core::cmp::Reverse(entry.stage));
        group(one).cmp(&group(other)).then(one.times.median.total_cmp(&other.times.median))
    });
    for entry in order {
        let tail = |pick: fn(&Tail) -> u32| {
            entry.tail.as_ref().map_or_else(String::new, |tail| time(f64::from(pick(tail))))
        };
        let times = &entry.times;
        let refused = match (entry.counted.refused.all(), entry.twice.refused.all()) {
            (0, 0) => "0 %".to_owned(),
            _ => format!("{} ({})", percent(entry.refused), percent(entry.refused_twice)),
        };
        let cells = [
            time(times.median),
            format!("{} to {}", time(times.p10), time(times.p90)),
            processor(entry.processor),
            tail(|tail| tail.p50),
            tail(|tail| tail.p99),
            tail(|tail| tail.p999),
            exact_memory(entry.bytes()),
            exact_memory(entry.counted.reserved_bytes as u64),
            refused,
            percent(entry.apart),
            entry.stage.to_string(),
        ];
        table.add_row(std::iter::once(name(entry, advice)).chain(right(cells)));
    }
    table
}

/// Returns the trade-off: each row takes less memory than the one above it, and more time.
pub(crate) fn front(advice: &Advice) -> Table {
    let mut table = empty(&["candidate", "time", "processor", "memory", "times what is out at most"]);
    for entry in advice.front.iter().filter_map(|one| advice.entries.get(*one)) {
        let out = advice.needs.bytes.max(1) as f64;
        let cells = [
            time(entry.times.median),
            processor(entry.processor),
            exact_memory(entry.bytes()),
            three_digits(entry.bytes() as f64 / out),
        ];
        table.add_row(std::iter::once(name(entry, advice)).chain(right(cells)));
    }
    table
}

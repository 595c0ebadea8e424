//! The candidates as rows: all of them, and the trade-off.

use comfy_table::{Attribute, Cell, Table};

use super::entry::Entry;
use super::record::Advice;
use crate::drawing::number::{exact_memory, percent, processor, three_digits, time};
use crate::print;

/// What the columns of [`all`] mean.
pub(crate) const LEGEND: &str = "\
- candidate: a strategy with its settings, as `AnyBuilder` reads them. An arrow marks the choice. `heap` and `vec` are no pools.
- time: what a request and its release take of all threads together, without their waits; the median over the processes.
- 10 % to 90 %: the times that a tenth and nine tenths of the processes stayed below.
- processor: the share of one processor that this is, at the recorded rate of requests.
- memory: the pages that the candidate made resident at most, in a replay in the recorded order, by as many threads.
- reserved: the address space that its pools held at most, touched or not, and the buffers of the heap.
- refused: the share of the requests for which a pool had no room; in brackets at twice the connections.
- stage: how far a candidate came; those of stage 3 were timed longest.";

fn name(entry: &Entry, advice: &Advice) -> Cell {
    let chosen = entry.candidate == advice.pick().candidate;
    let name = Cell::new(format!("{} {}", if chosen { "→" } else { " " }, entry.candidate));
    if chosen { name.add_attribute(Attribute::Bold) } else { name }
}

/// Returns all candidates, those that can be chosen first, by stage and time.
pub(crate) fn all(advice: &Advice) -> Table {
    let mut table = print::table(&[
        "candidate",
        "time",
        "10 % to 90 %",
        "processor",
        "memory",
        "reserved",
        "refused",
        "stage",
    ]);
    let mut order: Vec<&Entry> = advice.entries.iter().collect();
    order.sort_by(|one, other| {
        let group = |entry: &Entry| (!entry.serves_all(), core::cmp::Reverse(entry.stage));
        group(one).cmp(&group(other)).then(one.times.median.total_cmp(&other.times.median))
    });
    for entry in order {
        let times = &entry.times;
        let refused = match (entry.counted.refused.all(), entry.twice.refused.all()) {
            (0, 0) => "0 %".to_owned(),
            _ => format!("{} ({})", percent(entry.refused), percent(entry.refused_twice)),
        };
        let cells = [
            time(times.median),
            format!("{} to {}", time(times.p10), time(times.p90)),
            processor(entry.processor),
            exact_memory(entry.bytes()),
            exact_memory(entry.counted.reserved_bytes as u64),
            refused,
            entry.stage.to_string(),
        ];
        table.add_row(std::iter::once(name(entry, advice)).chain(print::figures(cells)));
    }
    table
}

/// Returns the trade-off: each row takes less memory than the one above it, and more time.
pub(crate) fn front(advice: &Advice) -> Table {
    let mut table = print::table(&["candidate", "time", "processor", "memory", "times what is out at most"]);
    for entry in advice.front.iter().filter_map(|one| advice.entries.get(*one)) {
        let out = advice.needs.bytes.max(1) as f64;
        let cells = [
            time(entry.times.median),
            processor(entry.processor),
            exact_memory(entry.bytes()),
            three_digits(entry.bytes() as f64 / out),
        ];
        table.add_row(std::iter::once(name(entry, advice)).chain(print::figures(cells)));
    }
    table
}

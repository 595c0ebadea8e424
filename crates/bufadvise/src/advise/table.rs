//! The candidates as a table.

use comfy_table::Cell;

use super::replay::Replayed;
use super::strategies::VEC;
use super::study::{Study, Tried};
use super::verdict::Prices;
use crate::number::{memory, percent, three_digits, time};
use crate::print;

/// What the columns mean.
const LEGEND: &str = "\
- candidate: a strategy with its settings, as `AnyBuilder` reads them. `vec` is no pool.
- time, page faults: of a request and its release in the replay.
- memory: what the replay made resident at most.
- saves: of the program's time. Behind it the price of its memory, as a share of that time.";

/// Returns all candidates, the best first, as a table and its legend.
pub(crate) fn all(study: &Study, prices: &Prices) -> String {
    let mut table = print::table(&["candidate", "time", "page faults", "memory", "saves", "price"]);
    let requests = prices.requests.replayed.max(1) as f64;
    let figures = |replayed: &Replayed| {
        let faults = three_digits(replayed.faults as f64 / requests);
        [time(replayed.nanos as f64 / requests), faults, memory(replayed.bytes)]
    };
    let mut row = |name: String, cells: Vec<String>| {
        table.add_row(std::iter::once(Cell::new(name)).chain(print::figures(cells)));
    };
    row(VEC.into(), figures(&study.now).to_vec());
    for Tried { settings, replayed, compared, dropped } in &study.tried {
        let cells = replayed.as_ref().zip(compared.as_ref()).map_or_else(Vec::new, |(replayed, compared)| {
            let saved = format!("{:.2} %", compared.saved * 100.0);
            figures(replayed).into_iter().chain([saved, percent(compared.price)]).collect()
        });
        let why = dropped.as_ref().map_or_else(String::new, |why| format!("\n  {why}"));
        row(format!("{settings}{why}"), cells);
    }
    format!("\n\n{table}\n{LEGEND}")
}

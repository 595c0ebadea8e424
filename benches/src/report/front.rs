//! The one chart of the front page: our strategies, `Vec` and known names, on what programs do
//! every day.
//!
//! No workload has all strategies in it, since a ring of bytes hands out no buffers: it has a panel
//! of its own.

use bufadvise::number;
use buftrials::bars::{Bar, Bars};
use buftrials::report::Picture;

use crate::harness::Kind;
use crate::harness::engine::BASELINE;
use crate::harness::record::Results;

/// Some engines at one row, each with the name that readers know it by.
struct Panel {
    row: &'static str,
    title: &'static str,
    bars: &'static [(&'static str, &'static str)],
}

const PANELS: [Panel; 2] = [
    Panel {
        row: "threads/2x4K",
        title: "Two threads, each of which takes a buffer of 4 KiB, writes to it and drops it",
        bars: &[
            ("slot", "SlotPool"),
            ("ring", "RingPool"),
            ("bump", "BumpPool"),
            ("shard", "ShardPool"),
            ("vec", "Vec"),
            ("ringal", "ringal"),
            ("bytes", "bytes (BytesMut)"),
            ("zeropool", "zeropool"),
            ("buffer_sv2", "buffer_sv2"),
        ],
    },
    Panel {
        row: "messages/256B-1-to-8",
        title: "Messages of 256 B from one thread to eight, through a queue",
        bars: &[
            ("mirror", "messages (mirror)"),
            ("crossbeam-channel", "crossbeam-channel (Vec)"),
            ("vec", "Vec (queue behind a lock)"),
        ],
    },
];

/// The chart; `None` where the results lack a cell of it.
pub(super) fn draw(results: &Results) -> Option<Picture> {
    let groups = PANELS.iter().map(|panel| Some((panel.title.to_owned(), bars(results, panel)?)));
    let host = &results.host;
    let day = host.date.split(' ').next().unwrap_or_default();
    Bars {
        name: "front",
        title: "Time relative to Vec: shorter is faster",
        groups: groups.collect::<Option<_>>()?,
        place: |value, most| value / most,
        mark: Some(1.0),
        show: number::three_digits,
        note: format!("Ratios of medians of the same rounds; {}, {} cores, {day}", host.cpu, host.cores),
    }
    .draw()
}

/// The bars of a panel, the shortest first.
fn bars(results: &Results, panel: &Panel) -> Option<Vec<Bar>> {
    let bar = |&(engine, name): &(&'static str, &'static str)| {
        let value = results.cell(panel.row, engine)?.to_vec?;
        let class = match engine {
            BASELINE => "c1",
            ours if super::view::names(results, Kind::Strategy).any(|name| name == ours) => "s0",
            _ => "c0",
        };
        Some(Bar { name: name.to_owned(), class, value })
    };
    let mut bars = panel.bars.iter().map(bar).collect::<Option<Vec<Bar>>>()?;
    bars.sort_by(|one, other| one.value.total_cmp(&other.value));
    Some(bars)
}

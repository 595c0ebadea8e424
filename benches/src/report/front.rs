//! The one chart of the front page: our strategies, `Vec` and known names, on what programs do
//! every day.
//!
//! No workload has all strategies in it, since a ring of bytes hands out no buffers: it has a panel
//! of its own.

use buftrials::report::Picture;

use crate::drawing::number;
use crate::drawing::svg::{self, Drawing, MARGIN, text_width};
use crate::harness::record::Results;

/// Some contestants at one row, each with the name that readers know it by.
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
        bars: &[("mirror", "MessageQueue (mirror)"), ("vec", "Vec (queue behind a lock)")],
    },
];

const TITLE: &str = "Time relative to Vec: shorter is faster";
const WIDTH: f64 = 760.0;
/// From one bar to the next.
const ROW: f64 = 24.0;
const THICKNESS: f64 = 16.0;
/// The room for the number at a bar's end.
const NUMBER: f64 = 44.0;

/// A bar.
struct Bar {
    name: &'static str,
    ratio: f64,
    class: &'static str,
}

/// The chart; `None` where the results lack a cell of it.
#[must_use]
pub fn draw(results: &Results) -> Option<Picture> {
    let panels: Vec<(&str, Vec<Bar>)> =
        PANELS.iter().map(|panel| Some((panel.title, bars(results, panel)?))).collect::<Option<_>>()?;
    let all = || panels.iter().flat_map(|(_, bars)| bars);
    let longest = all().map(|bar| text_width(bar.name)).fold(0.0, f64::max);
    let most = all().map(|bar| bar.ratio).fold(1.0, f64::max);
    let (left, right) = (MARGIN + longest + 12.0, WIDTH - MARGIN - NUMBER);
    let x = |ratio: f64| left + ratio / most * (right - left);
    let mut drawing = Drawing::new(WIDTH);
    let mut y = drawing.title(TITLE);
    for (title, bars) in &panels {
        y += 22.0;
        drawing.text(MARGIN, y, "start", "label", title);
        y += 8.0;
        drawing.vertical(x(1.0), y, y + ROW * bars.len() as f64, "mark");
        for bar in bars {
            let middle = y + ROW / 2.0;
            let strong = if bar.class == OURS { "name strong" } else { "name" };
            drawing.text(left - 10.0, middle + 4.0, "end", strong, bar.name);
            drawing.bar(left, x(bar.ratio), middle, THICKNESS, bar.class);
            drawing.text(x(bar.ratio) + 7.0, middle + 4.0, "start", "value", &number::ratio(bar.ratio));
            y += ROW;
        }
    }
    let host = &results.host;
    let day = host.date.split(' ').next().unwrap_or_default();
    let text = format!("Ratios of medians of the same rounds; {}, {} cores, {day}", host.cpu, host.cores);
    drawing.text(MARGIN, y + 24.0, "start", "axis", &text);
    let svg = svg::standalone(&drawing.finish(y + 38.0));
    Some(Picture { name: "front".into(), title: TITLE.into(), svg })
}

/// The colours of our strategies, of `Vec`, and of all others.
const OURS: &str = "s0";
const VEC: &str = "c1";
const OTHERS: &str = "c0";

/// The bars of a panel, the shortest first.
fn bars(results: &Results, panel: &Panel) -> Option<Vec<Bar>> {
    let ours: Vec<&str> = super::view::names(results, crate::harness::Kind::Strategy).collect();
    let bar = |&(contestant, name): &(&'static str, &'static str)| {
        let ratio = results.cell(panel.row, contestant)?.to_vec?;
        let class = match contestant {
            strategy if ours.contains(&strategy) => OURS,
            "vec" => VEC,
            _ => OTHERS,
        };
        Some(Bar { name, ratio, class })
    };
    let mut bars = panel.bars.iter().map(bar).collect::<Option<Vec<Bar>>>()?;
    bars.sort_by(|one, other| one.ratio.total_cmp(&other.ratio));
    Some(bars)
}

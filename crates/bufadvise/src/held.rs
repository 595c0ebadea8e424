//! The hold-time profile of a heap: bytes times seconds by place, as folded stacks and as a
//! flamegraph.

use std::fmt::Write;

use buftrace::Profile;

use crate::drawing::number::{memory, share};
use crate::drawing::svg::{self, Drawing, MARGIN, text_width};
use crate::names::{Frame, Stacks};

const WIDTH: f64 = 1200.0;
const ROW: f64 = 18.0;
/// Narrower bars are left out.
const LEAST_WIDTH: f64 = 0.5;
/// A text in a narrower bar would be dots only.
const LEAST_TEXT: f64 = 30.0;
/// Classes of the bars, by depth, so that neighbours differ.
const CLASSES: [&str; 3] = ["f0", "f1", "f2"];

/// A frame with all that was held by what it called.
#[derive(Debug, Default)]
struct Node {
    name: String,
    /// Bytes times seconds of itself, and with those of the nodes above it.
    own: f64,
    all: f64,
    above: Vec<Node>,
}

impl Node {
    /// Returns the node above of that name, which is new where there was none.
    fn child(&mut self, name: String) -> &mut Self {
        let found = self.above.iter().position(|node| node.name == name);
        let at = found.unwrap_or(self.above.len());
        if found.is_none() {
            self.above.push(Self { name, ..Self::default() });
        }
        &mut self.above[at]
    }

    /// Sorts the nodes, the widest first.
    fn sort(&mut self) {
        self.above.sort_by(|one, other| other.all.total_cmp(&one.all).then(one.name.cmp(&other.name)));
        self.above.iter_mut().for_each(Self::sort);
    }

    fn depth(&self) -> usize {
        1 + self.above.iter().map(Self::depth).max().unwrap_or(0)
    }
}

/// The profile.
#[derive(Debug)]
pub(crate) struct Held {
    root: Node,
    seconds: f64,
}

impl Held {
    pub(crate) fn of(heap: &Profile, stacks: &Stacks) -> Self {
        let program = heap.info().program.rsplit('/').next().unwrap_or_default();
        let mut root = Node { name: program.to_owned(), ..Node::default() };
        for site in heap.sites() {
            let frames = stacks.frames(site.stack);
            root.all += site.byte_seconds;
            let mut node = &mut root;
            for (nth, frame) in frames.iter().rev().enumerate() {
                node = node.child(name(frame, nth + 1 == frames.len()));
                node.all += site.byte_seconds;
            }
            node.own += site.byte_seconds;
        }
        root.sort();
        Self { root, seconds: heap.duration_ns() as f64 / 1e9 }
    }

    /// Writes one line for each stack: its frames, outermost first, and bytes times milliseconds.
    /// Programs that draw such lines take whole numbers, and those of a short run are less than one
    /// in seconds.
    pub(crate) fn folded(&self) -> String {
        let mut lines = String::new();
        fold(&self.root, String::new(), &mut lines);
        lines
    }

    /// Returns a flamegraph: the width of a bar is the share of all bytes times seconds.
    pub(crate) fn flamegraph(&self) -> String {
        let mut drawing = Drawing::new(WIDTH);
        let top = drawing.title(&format!(
            "{}: bytes × seconds by place; {} out on average over {:.3} s",
            self.root.name,
            memory(self.mean(self.root.all)),
            self.seconds
        ));
        let bottom = top + 8.0 + ROW * self.root.depth() as f64;
        let scale = (WIDTH - 2.0 * MARGIN) / self.root.all.max(f64::MIN_POSITIVE);
        self.draw(&mut drawing, &self.root, MARGIN, bottom, scale, 0);
        let note = "the program is at the bottom, and above each function are those that it called; point at a bar for its figures";
        drawing.text(MARGIN, bottom + 20.0, "start", "axis", note);
        svg::standalone(&drawing.finish(bottom + 34.0))
    }

    fn draw(&self, drawing: &mut Drawing, node: &Node, x: f64, bottom: f64, scale: f64, depth: usize) {
        let width = node.all * scale;
        if width < LEAST_WIDTH {
            return;
        }
        let title = format!(
            "{}: {} of all, {} out on average",
            node.name,
            share(node.all / self.root.all.max(f64::MIN_POSITIVE)),
            memory(self.mean(node.all))
        );
        let class = CLASSES[depth % CLASSES.len()];
        drawing.titled_bar(x, x + width, bottom - ROW / 2.0, ROW - 1.0, class, &title);
        if width >= LEAST_TEXT {
            drawing.text(x + 4.0, bottom - 5.0, "start", "label", &fitting(&node.name, width - 8.0));
        }
        let mut x = x;
        for above in &node.above {
            self.draw(drawing, above, x, bottom - ROW, scale, depth + 1);
            x += above.all * scale;
        }
    }

    /// Returns the bytes that were out on average.
    fn mean(&self, byte_seconds: f64) -> u64 {
        (byte_seconds / self.seconds.max(1e-9)) as u64
    }
}

/// Returns what a bar is called: the innermost frame has its line, which tells places of one
/// function apart.
fn name(frame: &Frame, is_innermost: bool) -> String {
    let name = if is_innermost { frame.place() } else { frame.name() };
    name.replace(';', ":").replace(['\n', '\r'], " ")
}

fn fold(node: &Node, before: String, lines: &mut String) {
    let path = if before.is_empty() { node.name.clone() } else { format!("{before};{}", node.name) };
    let value = (node.own * 1e3).round();
    if value > 0.0 {
        let _ = writeln!(lines, "{path} {value:.0}");
    }
    for above in &node.above {
        fold(above, path.clone(), lines);
    }
}

/// Returns as much of a text as fits.
fn fitting(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut fitting = String::new();
    let mut room = width - text_width("…");
    for letter in text.chars() {
        room -= text_width(letter.encode_utf8(&mut [0; 4]));
        if room < 0.0 {
            break;
        }
        fitting.push(letter);
    }
    fitting + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, own: f64, above: Vec<Node>) -> Node {
        let all = own + above.iter().map(|node| node.all).sum::<f64>();
        Node { name: name.into(), own, all, above }
    }

    #[test]
    fn folded_lines_have_what_is_of_themselves() {
        let root = node(
            "app",
            0.0,
            vec![node("a", 0.5, vec![node("b<c, d>", 2.0, vec![])]), node("e", 0.0001, vec![])],
        );
        let held = Held { root, seconds: 1.0 };
        assert_eq!(held.folded(), "app;a 500\napp;a;b<c, d> 2000\n");
    }

    #[test]
    fn the_widest_bar_holds_most() {
        let mut root = node("app", 0.0, vec![node("pool", 1.0, vec![]), node("leak", 3.0, vec![])]);
        root.sort();
        let drawn = Held { root, seconds: 2.0 }.flamegraph();
        assert!(drawn.contains("<title>leak: 75.0 % of all, 1 B out on average</title>"), "{drawn}");
        let width = |name: &str| -> f64 {
            let end = drawn.find(&format!("<title>{name}: ")).expect("a bar");
            let start = drawn[..end].rfind(" width=\"").expect("a width") + 8;
            drawn[start..].split('"').next().and_then(|width| width.parse().ok()).expect("a number")
        };
        assert!((width("leak") / width("pool") - 3.0).abs() < 0.01, "{drawn}");
        assert!((width("app") - (WIDTH - 2.0 * MARGIN)).abs() < 0.1, "{drawn}");
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(fitting("abc", 100.0), "abc");
        let cut = fitting("a_rather_long_name", 60.0);
        assert!(cut.ends_with('…') && text_width(&cut) <= 60.0, "{cut}");
    }
}

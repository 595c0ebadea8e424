//! The pen: elements of an SVG drawing, logarithmic scales, labels that keep apart.

use std::fmt::Write;

/// What does not depend on the colours.
const SHAPES: &str = "
svg { font: 12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; }
svg .title { font-size: 14px; font-weight: 600; } svg .tick, svg .axis { font-size: 11px; }
svg .grid, svg .mark, svg .line, svg .leader, svg .span { fill: none; } svg .mark { stroke-dasharray: 5 3; }
svg .line { stroke-width: 1.5; } svg .line.strong { stroke-width: 3; } svg .dashed { stroke-dasharray: 4 3; }
svg .leader { stroke-width: 0.75; opacity: 0.6; } svg .span { stroke-width: 2; opacity: 0.45; }
svg .dot { stroke-width: 0.75; } svg .hollow { stroke-width: 1.5; } svg .name.strong { font-weight: 700; }
";

/// Colours of a role or a contestant, on a light and on a dark page. Strategies (`s`) are strong, controls (`c`) grey, peers
/// (`p`) in between, other settings of a strategy (`v`) from light to dark, or the strategies' own, paler.
const COLOURS: [(&str, &str, &str); 43] = [
    ("ink", "#1f2328", "#e6edf3"),
    ("soft", "#656d76", "#9198a1"),
    ("faint", "#d8dee4", "#3d444d"),
    ("fainter", "#eef1f4", "#262c36"),
    ("paper", "#ffffff", "#0d1117"),
    ("s0", "#d9480f", "#ff922b"),
    ("s1", "#1864ab", "#74c0fc"),
    ("s2", "#2b8a3e", "#8ce99a"),
    ("s3", "#862e9c", "#e599f7"),
    ("s4", "#c92a2a", "#ff8787"),
    ("s5", "#a61e4d", "#faa2c1"),
    ("v0", "#f8c9a8", "#5e3a22"),
    ("v1", "#eda679", "#8a5430"),
    ("v2", "#de8450", "#b4703f"),
    ("v3", "#c4612c", "#db9259"),
    ("v4", "#9c4415", "#f5bb8a"),
    ("v5", "#f2a27c", "#8f4a17"),
    ("v6", "#7fb2dd", "#2f6690"),
    ("v7", "#86c596", "#3d7a4c"),
    ("v8", "#c48fd1", "#7a4a86"),
    ("c0", "#868e96", "#868e96"),
    ("c1", "#1f2328", "#e6edf3"),
    ("c2", "#adb5bd", "#5c636a"),
    ("c3", "#b08d57", "#cfb284"),
    ("c4", "#8d6e63", "#bcaaa4"),
    ("c5", "#546e7a", "#90a4ae"),
    ("p0", "#4263eb", "#748ffc"),
    ("p1", "#0c8599", "#3bc9db"),
    ("p2", "#5c940d", "#a9e34b"),
    ("p3", "#ae3ec9", "#da77f2"),
    ("p4", "#e67700", "#ffc078"),
    ("p5", "#7950f2", "#b197fc"),
    ("p6", "#c2255c", "#f783ac"),
    ("p7", "#087f5b", "#38d9a9"),
    ("p8", "#a0522d", "#d9a066"),
    ("p9", "#5f3dc4", "#9775fa"),
    ("p10", "#3b7080", "#7fb3c4"),
    ("p11", "#e64980", "#faa2c1"),
    ("p12", "#f08c00", "#ffd43b"),
    ("p13", "#1098ad", "#66d9e8"),
    ("p14", "#2b8a3e", "#69db7c"),
    ("p15", "#087f5b", "#38d9a9"),
    ("p16", "#364fc7", "#91a7ff"),
];

/// Whether the style sheet has a colour of that name.
#[cfg(test)]
pub(crate) fn has_colour(class: &str) -> bool {
    COLOURS.iter().any(|colour| colour.0 == class)
}

/// The charts' style sheet: light, and dark where the reader prefers it. Colours are written out, because not every program
/// that shows SVG knows variables.
pub(crate) fn style() -> String {
    let light = rules(|colour| colour.1);
    let dark = rules(|colour| colour.2);
    format!("{SHAPES}{light}@media (prefers-color-scheme: dark) {{ {dark} }}")
}

fn rules(pick: fn(&(&str, &'static str, &'static str)) -> &'static str) -> String {
    let of = |name: &str| COLOURS.iter().find(|colour| colour.0 == name).map_or("#888888", pick);
    let mut rules = format!(
        "svg .title, svg .label, svg .legend {{ fill: {0} }} svg .tick, svg .axis {{ fill: {1} }} svg .mark {{ stroke: {1} }} \
         svg .grid {{ stroke: {3} }} svg .grid.major {{ stroke: {2} }} svg .paper {{ fill: {4} }} svg .dot {{ stroke: {4} }}\n",
        of("ink"),
        of("soft"),
        of("faint"),
        of("fainter"),
        of("paper")
    );
    for colour in COLOURS.iter().skip(5) {
        let (class, value) = (colour.0, pick(colour));
        let _ = writeln!(
            rules,
            "svg .line.{class}, svg .leader.{class}, svg .span.{class}, svg .hollow.{class} {{ stroke: {value} }} \
             svg .dot.{class}, svg .name.{class} {{ fill: {value} }}"
        );
    }
    let _ = writeln!(rules, "svg .dot.hollow {{ fill: {} }}", of("paper"));
    rules
}

/// A drawing as a file of its own: with the style sheet, and a ground.
pub(crate) fn standalone(svg: &str) -> String {
    let style = format!("<style>{}</style>", style());
    match svg.find('>') {
        Some(end) => format!("{}{style}{PAPER}{}", &svg[..=end], &svg[end + 1..]),
        None => svg.into(),
    }
}

const PAPER: &str = "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>";

/// About how wide a label is, in pixels. Fonts differ; this errs to the wide side.
pub(crate) fn text_width(text: &str) -> f64 {
    text.chars().map(|letter| if "il.,'|/ ".contains(letter) { 4.2 } else { 7.4 }).sum()
}

/// Text with the characters escaped that markup means something by.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A drawing that grows downwards.
pub(crate) struct Drawing {
    width: f64,
    body: String,
    title: String,
}

impl Drawing {
    pub(crate) fn new(width: f64) -> Self {
        Self { width, body: String::new(), title: String::new() }
    }

    pub(crate) fn title(&mut self, title: &str) {
        self.title = title.into();
        self.text(16.0, 24.0, "start", "title", title);
    }

    /// Names with their dots, in as many lines as they need; returns where they end.
    pub(crate) fn legend(&mut self, named: &[(String, String)]) -> f64 {
        let (mut x, mut y) = (16.0, 46.0);
        for (name, class) in named {
            let width = 26.0 + text_width(name);
            if x + width > self.width - 16.0 {
                x = 16.0;
                y += 18.0;
            }
            self.dot(x + 5.0, y - 4.0, class, class == "c2", name);
            self.text(x + 14.0, y, "start", "legend", name);
            x += width;
        }
        y + 6.0
    }

    pub(crate) fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let text = escape(text);
        let _ = write!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
        );
    }

    pub(crate) fn horizontal(&mut self, from: f64, to: f64, y: f64, class: &str) {
        let _ = write!(self.body, "<path class=\"{class}\" d=\"M{from:.1},{y:.1} L{to:.1},{y:.1}\"/>");
    }

    pub(crate) fn vertical(&mut self, x: f64, from: f64, to: f64, class: &str) {
        let _ = write!(self.body, "<path class=\"{class}\" d=\"M{x:.1},{from:.1} L{x:.1},{to:.1}\"/>");
    }

    pub(crate) fn path(&mut self, path: &str, class: &str, dashed: bool) {
        let class = match class.as_bytes().first() {
            Some(b'l') => class.to_owned(),
            Some(b's') => format!("line strong {class}"),
            _ => format!("line {class}"),
        };
        let dashed = if dashed { " dashed" } else { "" };
        let _ = write!(self.body, "<path class=\"{class}{dashed}\" d=\"{}\"/>", path.trim());
    }

    /// A round dot; a square one for controls, and larger for strategies.
    pub(crate) fn dot(&mut self, x: f64, y: f64, class: &str, hollow: bool, title: &str) {
        let title = escape(title);
        let hollow = if hollow { " hollow" } else { "" };
        let _ = match class.as_bytes().first() {
            Some(b'c') => write!(
                self.body,
                "<rect class=\"dot {class}{hollow}\" x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\">\
                 <title>{title}</title></rect>",
                x - 4.0,
                y - 4.0
            ),
            first => write!(
                self.body,
                "<circle class=\"dot {class}{hollow}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{}\">\
                 <title>{title}</title></circle>",
                if first == Some(&b's') { 6.0 } else { 4.0 }
            ),
        };
    }

    pub(crate) fn finish(self, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {height:.0}\" role=\"img\" \
             aria-label=\"{}\">{}</svg>",
            self.width,
            escape(&self.title),
            self.body
        )
    }
}

/// A logarithmic scale.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// A line across the chart.
pub(crate) struct Tick {
    pub(crate) value: f64,
    /// A power of ten.
    pub(crate) major: bool,
    pub(crate) labelled: bool,
}

impl Log {
    /// A scale that all values fit on, with a little room; `None` for no values.
    pub(crate) fn around(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = values
            .filter(|&value| value > 0.0 && value.is_finite())
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        (high > 0.0).then(|| Self { low: low / 1.15, high: high * 1.15 })
    }

    /// Where a value lies, 0 at the low end, 1 at the high end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        ((value / self.low).ln() / (self.high / self.low).ln()).clamp(0.0, 1.0)
    }

    /// Powers of ten and their multiples; few decades show labels at 2 and 5 too.
    pub(crate) fn ticks(&self) -> Vec<Tick> {
        let decades = (self.high / self.low).log10();
        let labels: &[u32] = match decades {
            ..1.2 => &[1, 2, 3, 5, 7],
            ..3.0 => &[1, 2, 5],
            ..5.0 => &[1, 3],
            _ => &[1],
        };
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        (first..=last)
            .flat_map(|power| (1..10_u32).map(move |digit| (digit, f64::from(digit) * 10_f64.powi(power))))
            .filter(|&(_, value)| (self.low..=self.high).contains(&value))
            .map(|(digit, value)| Tick { value, major: digit == 1, labelled: labels.contains(&digit) })
            .collect()
    }
}

/// Moves sorted places apart until neighbours are at least `gap` from each other, within the bounds as far as they allow.
pub(crate) fn apart(places: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut moved = places.to_vec();
    for _ in 0..200 {
        for index in 1..moved.len() {
            let lack = gap - (moved[index] - moved[index - 1]);
            if lack > 0.0 {
                moved[index - 1] -= lack / 2.0;
                moved[index] += lack / 2.0;
            }
        }
        if let Some(first) = moved.first_mut() {
            *first = first.max(top);
        }
        if let Some(last) = moved.last_mut() {
            *last = last.min(bottom);
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart() {
        let moved = apart(&[100.0, 101.0, 102.0, 300.0], 15.0, 0.0, 400.0);
        assert!(moved.windows(2).all(|pair| pair[1] - pair[0] > 14.5), "{moved:?}");
        assert!((moved[3] - 300.0).abs() < 1.0, "nobody pushes the last one: {moved:?}");
    }

    #[test]
    fn scales_hold_their_values() {
        let scale = Log::around([3.0, 700.0].into_iter()).unwrap();
        assert!(scale.place(3.0) > 0.0 && scale.place(700.0) < 1.0);
        let labelled: Vec<f64> =
            scale.ticks().into_iter().filter(|tick| tick.labelled).map(|tick| tick.value).collect();
        assert_eq!(labelled, [5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert!(Log::around([].into_iter()).is_none());
    }

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape("a<b & \"c\""), "a&lt;b &amp; &quot;c&quot;");
    }
}

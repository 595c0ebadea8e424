//! The pen: elements of an SVG drawing.

use std::fmt::Write;

use super::colours::style;

/// Returns a drawing as a file of its own: with the style sheet, and a ground.
#[must_use]
pub fn standalone(svg: &str) -> String {
    let style = format!("<style>{}</style>", style());
    match svg.find('>') {
        Some(end) => format!("{}{style}{PAPER}{}", &svg[..=end], &svg[end + 1..]),
        None => svg.into(),
    }
}

const PAPER: &str = "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>";

/// Space at the sides of a drawing.
pub const MARGIN: f64 = 16.0;

/// Estimates how wide a label is, in pixels. Fonts differ; this errs to the wide side.
#[must_use]
pub fn text_width(text: &str) -> f64 {
    let width = |letter| match letter {
        'i' | 'l' | '.' | ',' | '\'' | '|' | '/' | ' ' => 4.2,
        'm' | 'w' | 'M' | 'W' => 11.0,
        _ => 7.4,
    };
    text.chars().map(width).sum()
}

/// Returns text with the characters escaped that markup means something by.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A drawing that grows downwards.
#[derive(Debug)]
pub struct Drawing {
    width: f64,
    body: String,
    title: String,
    /// Where the title ends.
    top: f64,
}

impl Drawing {
    /// Returns an empty drawing of that width, in pixels.
    #[must_use]
    pub fn new(width: f64) -> Self {
        Self { width, body: String::new(), title: String::new(), top: 0.0 }
    }

    /// Draws the title, in as many lines as it needs; returns where it ends.
    pub fn title(&mut self, title: &str) -> f64 {
        const LINE: f64 = 18.0;
        self.title = title.into();
        let mut y = 24.0;
        let mut line = String::new();
        for word in title.split(' ') {
            // The title is larger than what widths are known of.
            let longer = format!("{line} {word}");
            if !line.is_empty() && text_width(&longer) * 1.2 > self.width - 2.0 * MARGIN {
                self.text(MARGIN, y, "start", "title", &line);
                y += LINE;
                line = word.into();
            } else {
                line = longer.trim_start().into();
            }
        }
        self.text(MARGIN, y, "start", "title", &line);
        self.top = y + 4.0;
        self.top
    }

    /// Names with their marks, in as many lines as they need; returns where they end.
    pub fn legend(&mut self, named: &[(String, String)]) -> f64 {
        let (mut x, mut y) = (MARGIN, self.top + LABEL);
        for (name, class) in named {
            let width = 26.0 + text_width(name);
            if x + width > self.width - MARGIN {
                x = MARGIN;
                y += LABEL;
            }
            self.dot(x + 5.0, y - 4.0, class, class == NOOP, name);
            self.text(x + 14.0, y, "start", "legend", name);
            x += width;
        }
        y + 6.0
    }

    /// Draws text that starts, ends or has its middle at `x`, as `anchor` says, on the line `y`.
    pub fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let text = escape(text);
        let _ = write!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
        );
    }

    /// Draws a line across.
    pub fn horizontal(&mut self, from: f64, to: f64, y: f64, class: &str) {
        let _ = write!(self.body, "<path class=\"{class}\" d=\"M{from:.1},{y:.1} L{to:.1},{y:.1}\"/>");
    }

    /// Draws a line downwards.
    pub fn vertical(&mut self, x: f64, from: f64, to: f64, class: &str) {
        let _ = write!(self.body, "<path class=\"{class}\" d=\"M{x:.1},{from:.1} L{x:.1},{to:.1}\"/>");
    }

    /// Draws a bar from `from` to `to`, with its middle at `y`.
    pub fn bar(&mut self, from: f64, to: f64, y: f64, thickness: f64, class: &str) {
        let _ = write!(
            self.body,
            "<rect class=\"bar {class}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{thickness:.1}\" rx=\"2\"/>",
            y - thickness / 2.0,
            (to - from).max(1.0)
        );
    }

    /// Draws a path of SVG's, as the line of an engine.
    pub fn path(&mut self, path: &str, class: &str, dashed: bool) {
        let class = match class.as_bytes().first() {
            Some(b'l') => class.to_owned(),
            Some(b's') => format!("line strong {class}"),
            _ => format!("line {class}"),
        };
        let dashed = if dashed { " dashed" } else { "" };
        let _ = write!(self.body, "<path class=\"{class}{dashed}\" d=\"{}\"/>", path.trim());
    }

    /// Draws a mark: a large circle for a strategy, a diamond for another setting of one, a square
    /// for a control, a small circle for a peer.
    pub fn dot(&mut self, x: f64, y: f64, class: &str, hollow: bool, title: &str) {
        let hollow = if hollow { " hollow" } else { "" };
        let title = match title {
            "" => String::new(),
            title => format!("<title>{}</title>", escape(title)),
        };
        let _ = match class.as_bytes().first() {
            Some(b'c') => write!(
                self.body,
                "<rect class=\"dot {class}{hollow}\" x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\">{title}</rect>",
                x - 4.0,
                y - 4.0
            ),
            Some(b'v') => write!(
                self.body,
                "<path class=\"dot {class}{hollow}\" d=\"M{x:.1},{:.1} l5,5 l-5,5 l-5,-5 z\">{title}</path>",
                y - 5.0
            ),
            first => write!(
                self.body,
                "<circle class=\"dot {class}{hollow}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{}\">{title}</circle>",
                if first == Some(&b's') { 6.0 } else { 4.0 }
            ),
        };
    }

    /// Returns the whole drawing, of that height.
    #[must_use]
    pub fn finish(self, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {height:.0}\" role=\"img\" \
             aria-label=\"{}\">{}</svg>",
            self.width,
            escape(&self.title),
            self.body
        )
    }
}

/// The height of a line in a legend.
pub const LABEL: f64 = 18.0;
/// The class of the engine that is drawn hollow.
pub const NOOP: &str = "c2";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape("a<b & \"c\""), "a&lt;b &amp; &quot;c&quot;");
    }

    #[test]
    fn a_long_title_takes_several_lines() {
        let mut drawing = Drawing::new(200.0);
        assert!(drawing.title("time of an operation by the number of threads") > 40.0);
        assert_eq!(drawing.body.matches("class=\"title\"").count(), 3, "{}", drawing.body);
        assert!(
            drawing.finish(10.0).contains("aria-label=\"time of an operation by the number of threads\"")
        );
    }
}

//! A picture of bars in groups, one above the other.

use crate::drawing::svg::{self, Drawing, MARGIN, text_width};

use crate::report::Picture;

const WIDTH: f64 = 860.0;
/// From one bar to the next.
const LINE: f64 = 20.0;
const THICKNESS: f64 = 13.0;
/// The room for the number at a bar's end.
const NUMBER: f64 = 60.0;

/// A bar.
#[derive(Debug, Clone)]
pub struct Bar {
    /// What it stands for.
    pub name: String,
    /// The class of its colour.
    pub class: &'static str,
    /// How long it is.
    pub value: f64,
}

/// The picture.
#[derive(Debug)]
pub struct Bars<'a> {
    /// The name of its file, without `.svg`.
    pub name: &'a str,
    /// What it shows.
    pub title: &'a str,
    /// The groups, each with its title and its bars.
    pub groups: Vec<(String, Vec<Bar>)>,
    /// The share of the longest bar that a value takes, of the longest value.
    pub place: fn(f64, f64) -> f64,
    /// A value that a line across marks.
    pub mark: Option<f64>,
    /// A value as people read it.
    pub show: fn(f64) -> String,
    /// A line below.
    pub note: String,
}

impl Bars<'_> {
    /// Draws it; `None` without bars.
    #[must_use]
    pub fn draw(&self) -> Option<Picture> {
        let all = || self.groups.iter().flat_map(|(_, bars)| bars);
        let most = all().map(|bar| bar.value).chain(self.mark).reduce(f64::max)?;
        all().next()?;
        let longest = all().map(|bar| text_width(&bar.name)).fold(0.0, f64::max);
        let (left, right) = (MARGIN + longest + 12.0, WIDTH - MARGIN - NUMBER);
        let x = |value: f64| left + (self.place)(value, most) * (right - left);
        let mut drawing = Drawing::new(WIDTH);
        let mut y = drawing.title(self.title);
        for (title, bars) in &self.groups {
            y += 24.0;
            drawing.text(MARGIN, y, "start", "label", title);
            y += 8.0;
            if let Some(mark) = self.mark {
                drawing.vertical(x(mark), y, y + LINE * bars.len() as f64, "mark");
            }
            for bar in bars {
                let middle = y + LINE / 2.0;
                let strong = if bar.class.starts_with('s') { "name strong" } else { "name" };
                drawing.text(left - 10.0, middle + 4.0, "end", strong, &bar.name);
                drawing.bar(left, x(bar.value), middle, THICKNESS, bar.class);
                let shown = (self.show)(bar.value);
                drawing.text(x(bar.value) + 7.0, middle + 4.0, "start", "value", &shown);
                y += LINE;
            }
        }
        drawing.text(MARGIN, y + 22.0, "start", "axis", &self.note);
        let svg = svg::standalone(&drawing.finish(y + 36.0));
        Some(Picture { name: self.name.to_owned(), title: self.title.to_owned(), svg })
    }
}

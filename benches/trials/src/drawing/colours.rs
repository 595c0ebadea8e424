//! The charts' style sheet: a colour for each role and for each engine, on a light page and on
//! a dark one.

use std::fmt::Write;

/// What does not depend on the colours.
const SHAPES: &str = "
svg { font: 12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; }
svg .title { font-size: 14px; font-weight: 600; } svg .tick, svg .axis { font-size: 11px; }
svg .grid, svg .mark, svg .line, svg .leader, svg .span { fill: none; } svg .mark { stroke-dasharray: 5 3; }
svg .line { stroke-width: 1.5; } svg .line.strong { stroke-width: 3; } svg .dashed { stroke-dasharray: 4 3; }
svg .leader { stroke-width: 0.75; opacity: 0.6; } svg .span { stroke-width: 2; opacity: 0.45; }
svg .dot { stroke-width: 0.75; } svg .hollow { stroke-width: 1.5; } svg .name.strong { font-weight: 700; }
svg .value { font-weight: 600; }
";

/// Colours that belong to no engine.
const ROLES: [(&str, &str, &str); 5] = [
    ("ink", "#1f2328", "#e6edf3"),
    ("soft", "#656d76", "#9198a1"),
    ("faint", "#d8dee4", "#3d444d"),
    ("fainter", "#eef1f4", "#262c36"),
    ("paper", "#ffffff", "#0d1117"),
];

/// Colours of the engines, by kind and place in it: strategies (`s`), other settings of them
/// (`v`), controls (`c`), peers (`p`). No two are alike, and all stand out from the page.
const ENGINES: [(&str, &str, &str); 43] = [
    ("s0", "#d9480f", "#ff922b"),
    ("s1", "#1864ab", "#4dabf7"),
    ("s2", "#2b8a3e", "#8ce99a"),
    ("s3", "#862e9c", "#e599f7"),
    ("s4", "#a07d00", "#ffd43b"),
    ("s5", "#467cc0", "#8a58ea"),
    ("v0", "#c559dd", "#d660de"),
    ("v1", "#6953a0", "#f0bdf2"),
    ("v2", "#872465", "#c22990"),
    ("v3", "#8a956c", "#848e2d"),
    ("v4", "#8c4c61", "#fd5b0b"),
    ("v5", "#d0750a", "#c38c37"),
    ("v6", "#237356", "#9eb38b"),
    ("v7", "#707836", "#d6d4a7"),
    ("v8", "#a084a6", "#8fd718"),
    ("v9", "#2f6f8f", "#f2b8d0"),
    ("v10", "#8f5a2f", "#b8e8f2"),
    ("v11", "#3d7a00", "#ffe3a8"),
    ("v12", "#b5179e", "#7ad9ff"),
    ("c0", "#6a737b", "#868e96"),
    ("c1", "#1f2328", "#e6edf3"),
    ("c2", "#98a1a9", "#5c636a"),
    ("c3", "#8186d7", "#acbaf8"),
    ("c4", "#4f99bc", "#1292c0"),
    ("c5", "#8747d7", "#c27cbb"),
    ("c6", "#00047c", "#14ff1c"),
    ("p0", "#9c6bff", "#a27dfa"),
    ("p1", "#e24bac", "#a7547e"),
    ("p2", "#863709", "#d87972"),
    ("p3", "#0f92f7", "#3667ed"),
    ("p4", "#475b1d", "#c5fb41"),
    ("p5", "#af2055", "#f5519f"),
    ("p6", "#4631c1", "#7466b5"),
    ("p7", "#5f4869", "#a73bbf"),
    ("p8", "#a067ac", "#e2afae"),
    ("p9", "#c07973", "#d4212d"),
    ("p10", "#11a68b", "#39c3ae"),
    ("p11", "#545be9", "#5fe6fc"),
    ("p12", "#5aa61b", "#298c01"),
    ("p13", "#9d6044", "#a06604"),
    ("p14", "#ba2997", "#a8b532"),
    ("p15", "#225c62", "#109d7b"),
    ("p16", "#e03063", "#10b735"),
];

/// Returns whether the style sheet has a colour of that name.
#[must_use]
pub fn has_colour(class: &str) -> bool {
    ENGINES.iter().any(|colour| colour.0 == class)
}

/// Returns the style sheet: light, and dark where the reader prefers it. Colours are written out,
/// because not every program that shows SVG knows variables.
#[must_use]
pub fn style() -> String {
    let light = rules(|colour| colour.1);
    let dark = rules(|colour| colour.2);
    format!("{SHAPES}{light}@media (prefers-color-scheme: dark) {{ {dark} }}")
}

fn rules(pick: fn(&(&str, &'static str, &'static str)) -> &'static str) -> String {
    let of = |name: &str| ROLES.iter().find(|colour| colour.0 == name).map_or("#888888", pick);
    let mut rules = format!(
        "svg .title, svg .label, svg .legend, svg .name, svg .value {{ fill: {0} }} svg .tick, svg .axis {{ fill: {1} }} \
         svg .mark {{ stroke: {1} }} svg .grid {{ stroke: {3} }} svg .grid.major {{ stroke: {2} }} svg .paper {{ fill: {4} }} \
         svg .dot {{ stroke: {4} }}\n",
        of("ink"),
        of("soft"),
        of("faint"),
        of("fainter"),
        of("paper")
    );
    for colour in &ENGINES {
        let (class, value) = (colour.0, pick(colour));
        let _ = writeln!(
            rules,
            "svg .line.{class}, svg .leader.{class}, svg .span.{class}, svg .hollow.{class} {{ stroke: {value} }} \
             svg .dot.{class}, svg .bar.{class} {{ fill: {value} }}"
        );
    }
    let _ = writeln!(rules, "svg .dot.hollow {{ fill: {} }}", of("paper"));
    rules
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns red, green and blue as light, from 0 to 1.
    fn light(colour: &str) -> [f64; 3] {
        let part = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).expect("two hexadecimal digits");
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        [part(1), part(3), part(5)]
    }

    /// Returns the ratio of the accessibility guidelines.
    fn contrast(one: &str, other: &str) -> f64 {
        let luminance = |colour: &str| {
            let [r, g, b] = light(colour);
            0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
        };
        let (one, other) = (luminance(one), luminance(other));
        one.max(other) / one.min(other)
    }

    #[test]
    fn no_two_engines_look_alike() {
        let light: BTreeSet<_> = ENGINES.iter().map(|colour| colour.1).collect();
        let dark: BTreeSet<_> = ENGINES.iter().map(|colour| colour.2).collect();
        assert_eq!((light.len(), dark.len()), (ENGINES.len(), ENGINES.len()));
    }

    #[test]
    fn every_colour_stands_out_from_the_page() {
        let (_, light, dark) = ROLES[4];
        for (name, on_light, on_dark) in ENGINES {
            let (on_light, on_dark) = (contrast(on_light, light), contrast(on_dark, dark));
            assert!(on_light > 2.5 && on_dark > 2.5, "{name}: {on_light:.2}, {on_dark:.2}");
        }
    }
}

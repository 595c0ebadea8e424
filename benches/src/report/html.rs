//! `index.html`: one page with everything in it, to look at.

use std::fmt::Write;

use super::chart::Chart;
use super::view;
use crate::drawing::number;
use crate::drawing::svg::{escape, style};
use crate::harness::Kind;
use crate::harness::contestant::{BASELINE, FLOOR};
use crate::harness::record::{Outcome, Record, Results, Row};

const PAGE_STYLE: &str = "
:root { color-scheme: light dark; --text: #1f2328; --soft: #59636e; --page: #ffffff; --line: #d1d9e0; --head: #f6f8fa;
 --good: 46, 160, 67; --bad: 218, 54, 51; --link: #0969da; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --soft: #9198a1; --page: #0d1117; --line: #3d444d;
 --head: #151b23; --link: #4493f8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1280px; padding: 24px 20px 80px; color: var(--text); background: var(--page);
 font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { margin: 44px 0 6px; padding-top: 8px; border-top: 1px solid var(--line); }
h3 { margin: 20px 0 6px; font-size: 15px; } p { max-width: 90ch; margin: 6px 0; } .soft { color: var(--soft); }
nav a { margin-right: 14px; } a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 14px 0; font-size: 13px; }
dt { color: var(--soft); } dd { margin: 0; }
.scroll { overflow-x: auto; margin: 10px 0; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: 3px 10px; border-bottom: 1px solid var(--line); text-align: right; }
th { background: var(--head); font-weight: 600; } th:first-child, td:first-child { text-align: left; position: sticky;
 left: 0; background: var(--head); font-weight: 500; }
td small { color: var(--soft); margin-left: 5px; } td.win { font-weight: 700; } td.win::before { content: '★ '; }
td.none { color: var(--soft); } td.fail { color: rgb(var(--bad)); font-weight: 600; } th.ours { color: #d9480f; }
figure { margin: 16px 0; } svg { width: 100%; max-width: 1000px; height: auto; display: block; }
ul { margin: 6px 0; padding-left: 22px; } li { margin: 2px 0; } details { margin: 8px 0; }
summary { cursor: pointer; color: var(--link); font-size: 14px; }
.cards { display: flex; flex-wrap: wrap; gap: 12px; margin: 14px 0; }
.card { border: 1px solid var(--line); border-radius: 8px; padding: 10px 16px; } .card b { font-size: 22px; display: block; }
";

/// The page.
#[must_use]
pub fn page(results: &Results, charts: &[Chart]) -> String {
    let mut body = String::new();
    head(results, &mut body);
    verdict(results, &mut body);
    for chart in charts.iter().filter(|chart| chart.workload.is_empty()) {
        let _ = write!(body, "<figure>{}</figure>", chart.inline());
    }
    for (workload, rows) in view::workloads(results) {
        let _ =
            write!(body, "<h2 id=\"{workload}\">{workload}</h2><p>{}</p>", escape(super::about(workload)));
        for chart in charts.iter().filter(|chart| chart.workload == workload) {
            let _ = write!(body, "<figure>{}</figure>", chart.inline());
        }
        times(results, &rows, &mut body);
        ratios(results, &rows, &mut body);
        extra(results, &rows, &mut body);
    }
    reasons(results, &mut body);
    contestants(results, &mut body);
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>bufworks benchmark matrix</title>\
         <style>{PAGE_STYLE}{}</style></head><body>{body}</body></html>\n",
        style()
    )
}

fn head(results: &Results, body: &mut String) {
    body.push_str("<h1>bufworks benchmark matrix</h1><nav>");
    for (workload, _) in view::workloads(results) {
        let _ = write!(body, "<a href=\"#{workload}\">{workload}</a>");
    }
    body.push_str(
        "<a href=\"#missing\">cells without times</a><a href=\"#contestants\">contestants</a></nav><dl>",
    );
    for (name, value) in super::facts(results) {
        let _ = write!(body, "<dt>{name}</dt><dd>{}</dd>", escape(&value));
    }
    let _ = write!(body, "</dl><p class=\"soft\">{}</p>", escape(super::METHOD).replace('`', ""));
}

fn verdict(results: &Results, body: &mut String) {
    body.push_str("<h2>Where our strategies win and lose</h2><div class=\"cards\">");
    for strategy in view::names(results, Kind::Strategy) {
        let (rows, fastest, faster) = view::score(results, strategy);
        let _ = write!(
            body,
            "<div class=\"card\"><b>{strategy}</b>faster than {BASELINE} in {faster} of {rows} rows<br>fastest of all in \
             {fastest}</div>"
        );
    }
    body.push_str("</div>");
    let losses = view::losses(results);
    if losses.is_empty() {
        body.push_str("<p>There is no row in which a control or a peer is clearly faster.</p>");
    } else {
        lost(results, &losses, body);
    }
    duels(results, body);
}

fn lost(results: &Results, losses: &[view::Loss<'_>], body: &mut String) {
    body.push_str(
        "<p>Rows in which a control or a peer is faster by more than 5 % and the spreads do not overlap, worst first:</p>\
         <div class=\"scroll\"><table><tr><th>row</th><th>strategy</th><th>its time</th><th>fastest</th><th>its time</th>\
         <th>times</th></tr>",
    );
    for loss in losses {
        let time = |name: &str| results.median(&loss.row.id, name).map(number::time).unwrap_or_default();
        let _ = write!(
            body,
            "<tr><td>{} {}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>{}{}</td></tr>",
            loss.row.workload,
            escape(&loss.row.parameters),
            loss.strategy,
            time(loss.strategy),
            loss.faster,
            time(loss.faster),
            tinted(loss.times, ""),
            number::ratio(loss.times)
        );
    }
    body.push_str("</table></div>");
}

/// Each strategy against each of the others, over all rows.
fn duels(results: &Results, body: &mut String) {
    for strategy in view::names(results, Kind::Strategy) {
        let duels = view::duels(results, strategy);
        if duels.is_empty() {
            continue;
        }
        let _ = write!(
            body,
            "<details><summary>{strategy} against each of the others</summary><div class=\"scroll\"><table><tr>\
             <th>time of {strategy} to that of</th><th>rows</th><th>mean</th><th>best</th><th></th><th>worst</th><th></th></tr>"
        );
        for duel in duels {
            let _ = write!(body, "<tr><td>{}</td><td>{}</td>", duel.rival.name, duel.rows);
            let _ = write!(body, "{}{}</td>", tinted(duel.mean, ""), number::ratio(duel.mean));
            for (row, ratio) in [duel.best, duel.worst] {
                let _ = write!(
                    body,
                    "{}{}</td><td>{} {}</td>",
                    tinted(ratio, ""),
                    number::ratio(ratio),
                    row.workload,
                    escape(&row.parameters)
                );
            }
            body.push_str("</tr>");
        }
        body.push_str("</table></div></details>");
    }
}

/// The start of a table cell whose ground is green below a ratio of one and red above, the more the farther.
fn tinted(ratio: f64, class: &str) -> String {
    let strength = (ratio.log2().abs() / 3.0).min(1.0) * 0.45;
    let colour = if ratio < 1.0 { "good" } else { "bad" };
    format!("<td class=\"{class}\" style=\"background: rgba(var(--{colour}), {strength:.2})\">")
}

fn times(results: &Results, rows: &[&Row], body: &mut String) {
    let names = view::by_speed(results, rows);
    body.push_str("<h3>time per operation, and ratio to vec</h3><div class=\"scroll\"><table><tr><th></th>");
    for name in &names {
        let ours = view::names(results, Kind::Strategy).any(|strategy| strategy == *name);
        let _ = write!(body, "<th class=\"{}\">{name}</th>", if ours { "ours" } else { "" });
    }
    body.push_str("</tr>");
    for row in rows {
        let winner = view::winner(results, &row.id);
        let _ = write!(body, "<tr><td>{}</td>", escape(&row.parameters));
        for name in &names {
            let wins = winner == Some(*name);
            time(results.cell(&row.id, name), wins, body);
        }
        body.push_str("</tr>");
    }
    body.push_str("</table></div>");
}

fn time(record: Option<&Record>, wins: bool, body: &mut String) {
    let Some(record) = record else {
        body.push_str("<td></td>");
        return;
    };
    let _ = match &record.outcome {
        Outcome::Timed(timing) => {
            let start = match record.to_vec {
                Some(ratio) if record.contestant != BASELINE && record.contestant != FLOOR => {
                    tinted(ratio, if wins { "win" } else { "" })
                }
                _ => format!("<td class=\"{}\">", if wins { "win" } else { "" }),
            };
            let ratio = record
                .to_vec
                .map_or_else(String::new, |ratio| format!("<small>{}</small>", number::ratio(ratio)));
            let note = timing.note.as_deref().map_or_else(String::new, |note| format!("; {note}"));
            let alone = if timing.alone { "; in a process of its own" } else { "" };
            write!(
                body,
                "{start}<span title=\"p10 {}, p90 {}, {} rounds of {} operations{note}{alone}\">{}</span>{ratio}</td>",
                number::time(timing.p10),
                number::time(timing.p90),
                timing.rounds,
                timing.operations,
                number::time(timing.median)
            )
        }
        Outcome::Checked => write!(body, "<td>right</td>"),
        Outcome::Unsupported { reason } => {
            write!(body, "<td class=\"none\" title=\"{}\">–</td>", escape(reason))
        }
        outcome @ (Outcome::Wrong { .. } | Outcome::Crashed { .. } | Outcome::Hung { .. }) => {
            let word = match outcome {
                Outcome::Wrong { .. } => "wrong bytes",
                Outcome::Crashed { .. } => "crashed",
                _ => "hung",
            };
            write!(body, "<td class=\"fail\" title=\"{}\">{word}</td>", escape(&outcome.explain()))
        }
    };
}

/// Each strategy's times in times of everybody's.
fn ratios(results: &Results, rows: &[&Row], body: &mut String) {
    for strategy in view::names(results, Kind::Strategy) {
        let ratio = |row: &Row, name: &str| {
            results.cell(&row.id, name).and_then(|record| record.strategies_to_this.get(strategy).copied())
        };
        let names: Vec<&str> = view::columns(results, rows)
            .into_iter()
            .map(|column| column.name.as_str())
            .filter(|name| rows.iter().any(|row| ratio(row, name).is_some()))
            .collect();
        if names.is_empty() {
            continue;
        }
        let _ = write!(
            body,
            "<details><summary>time of {strategy} to that of the others</summary><div class=\"scroll\"><table><tr><th></th>"
        );
        for name in &names {
            let _ = write!(body, "<th>{name}</th>");
        }
        body.push_str("</tr>");
        for row in rows {
            let _ = write!(body, "<tr><td>{}</td>", escape(&row.parameters));
            for name in &names {
                match ratio(row, name) {
                    Some(ratio) => {
                        let _ = write!(body, "{}{}</td>", tinted(ratio, ""), number::ratio(ratio));
                    }
                    None => body.push_str("<td class=\"none\">–</td>"),
                }
            }
            body.push_str("</tr>");
        }
        body.push_str("</table></div></details>");
    }
}

fn extra(results: &Results, rows: &[&Row], body: &mut String) {
    let mut tables = String::new();
    for measure in super::MEASURES {
        let names: Vec<&str> = results
            .contestants
            .iter()
            .map(|column| column.name.as_str())
            .filter(|name| {
                rows.iter().any(|row| results.cell(&row.id, name).and_then(measure.show).is_some())
            })
            .collect();
        if names.is_empty() {
            continue;
        }
        let _ = write!(tables, "<h3>{}</h3><div class=\"scroll\"><table><tr><th></th>", measure.title);
        for name in &names {
            let _ = write!(tables, "<th>{name}</th>");
        }
        tables.push_str("</tr>");
        for row in rows {
            let _ = write!(tables, "<tr><td>{}</td>", escape(&row.parameters));
            for name in &names {
                let shown = results.cell(&row.id, name).and_then(measure.show);
                let _ = write!(tables, "<td>{}</td>", shown.unwrap_or_else(|| "–".into()));
            }
            tables.push_str("</tr>");
        }
        tables.push_str("</table></div>");
    }
    if !tables.is_empty() {
        let _ = write!(body, "<details><summary>tails, heap calls, memory</summary>{tables}</details>");
    }
}

fn reasons(results: &Results, body: &mut String) {
    body.push_str("<h2 id=\"missing\">Cells without times</h2>");
    let lines = super::reasons(results);
    if lines.is_empty() {
        body.push_str("<p>None.</p>");
        return;
    }
    body.push_str("<ul>");
    for (contestant, outcome, cases) in lines {
        let _ = write!(
            body,
            "<li><b>{contestant}</b> at {}: {}</li>",
            escape(&cases.join(", ")),
            escape(&outcome.explain())
        );
    }
    body.push_str("</ul>");
}

fn contestants(results: &Results, body: &mut String) {
    body.push_str("<h2 id=\"contestants\">Contestants</h2><ul>");
    for column in &results.contestants {
        let _ = write!(
            body,
            "<li><b>{}</b> ({}): {}</li>",
            column.name,
            super::kind(column.kind),
            escape(&column.idiom).replace('`', "")
        );
    }
    body.push_str("</ul>");
}

//! The advice in words, and the table of candidates.

use std::fmt::Write;
use std::io::IsTerminal;

use buftrace::Summary;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Attribute, Cell, CellAlignment, Table};

use super::choice::Choice;
use super::record::{Advice, Check, Entry};
use super::traffic::Needs;
use crate::drawing::number::{memory, three_digits, time};

/// A share in percent.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0 %".into(),
        ..0.1 => "< 0.1 %".into(),
        _ => format!("{percent:.1} %"),
    }
}

/// How much longer or shorter than another.
fn against(one: f64, other: f64) -> String {
    let ratio = one / other;
    if (0.985..=1.015).contains(&ratio) {
        "the same time as".into()
    } else {
        format!("{} times the time of", three_digits(ratio))
    }
}

/// Why this one: what the traffic is like, what that means for the strategy, and how it compares.
pub(crate) fn why(
    summary: &Summary,
    needs: &Needs,
    workers: usize,
    entries: &[Entry],
    choice: &Choice,
) -> Vec<String> {
    let pick = &entries[choice.pick];
    let crossing = summary.cross_thread_releases as f64 / summary.releases.max(1) as f64;
    let mut why = vec![format!(
        "The traffic has {} threads, of which {} acquire. {} of the buffers are released on another thread. There are {} different sizes; half \
         of the requests are for up to {}, and the largest is {}. At most {} buffers with {} are out at once, and {} with {} of one acquiring \
         thread. Half of the buffers are released within {}.",
        summary.threads,
        needs.owners,
        percent(crossing),
        summary.distinct_sizes,
        memory(needs.median_size as u64),
        memory(needs.largest as u64),
        needs.live,
        memory(needs.bytes as u64),
        needs.own_live,
        memory(needs.own_bytes as u64),
        time(summary.lifetimes.p50_ns as f64),
    )];
    why.push(reason(pick, needs));
    if !pick.candidate.is_control() && !pick.candidate.one_per_thread() && summary.threads > workers {
        why.push(format!(
            "The program's {} threads shared the caches of {workers} in the timed replay, so the strategy may be slower in the program. Refusals \
             and memory are those of all threads. Of the candidates with a pool for each thread, the fastest is {}.",
            summary.threads,
            fastest_private(entries).map_or_else(
                || "none that served every request".into(),
                |entry| format!("{} with {} and {}", entry.candidate, time(entry.times.median), memory(entry.bytes()))
            ),
        ));
    }
    why.push(against_fastest(pick, entries, choice));
    compared(pick, entries, &mut why);
    why
}

/// How the choice compares with the fastest.
fn against_fastest(pick: &Entry, entries: &[Entry], choice: &Choice) -> String {
    if choice.fastest == choice.pick {
        return "It is the fastest of the candidates that served every request.".into();
    }
    let fastest = &entries[choice.fastest];
    format!(
        "The fastest candidate, {}, takes {} for a request, and this one {}, which is within 5 %. This one takes {} of memory instead of {}.",
        fastest.candidate,
        time(fastest.times.median),
        time(pick.times.median),
        memory(pick.bytes()),
        memory(fastest.bytes()),
    )
}

/// How the choice compares with the controls, and what was out.
fn compared(pick: &Entry, entries: &[Entry], why: &mut Vec<String>) {
    for strategy in ["vec", "heap"] {
        let control = entries.iter().find(|entry| entry.candidate.strategy() == strategy);
        if let Some(control) = control.filter(|control| control.id != pick.id) {
            why.push(format!(
                "It takes {} {strategy}, and {} of memory to its {}.",
                against(pick.times.median, control.times.median),
                memory(pick.bytes()),
                memory(control.bytes()),
            ));
        }
    }
    let refusing: Vec<&Entry> = entries.iter().filter(|entry| !entry.serves_all()).collect();
    if let Some(worst) = refusing.iter().max_by(|one, other| one.refused.total_cmp(&other.refused)) {
        why.push(format!(
            "{} settings were out because they refused requests. {} refused the most, {}.",
            refusing.len(),
            worst.candidate,
            percent(worst.refused)
        ));
    }
}

/// The fastest of those that have a pool for each thread.
fn fastest_private(entries: &[Entry]) -> Option<&Entry> {
    let private = entries.iter().filter(|entry| entry.candidate.one_per_thread() && entry.serves_all());
    private.min_by(|one, other| one.times.median.total_cmp(&other.times.median))
}

/// What the traffic means for the strategy.
fn reason(pick: &Entry, needs: &Needs) -> String {
    let own = format!("{} with {}", needs.own_live, memory(needs.own_bytes as u64));
    match pick.candidate.strategy() {
        "slot" => format!(
            "Each thread that acquires has few buffers out at a time ({own}), so a small bounded pool of its own serves it without a lock. \
             A thread that drops a buffer only gives its slot back."
        ),
        "ring" => format!(
            "Each thread that acquires has few buffers out at a time ({own}), so a ring of its own serves it with a few instructions. No buffer \
             was kept so long that the ring ran full behind it. A buffer that is kept for long would do that."
        ),
        "bump" => "Buffers of any size are cut one after the other from shards that each thread has to itself. A shard is used again as a \
                   whole, so a release on another thread touches one counter and no list."
            .into(),
        "shard" => "Blocks go from the threads that drop them, through caches, to those that acquire, by size class. All threads share one \
                    pool, so idle memory of one thread serves another."
            .into(),
        name if !pick.candidate.is_control() => {
            format!("`{name}` served every request as fast as any, behind an `AnyPool`. Its own documentation describes it.")
        }
        _ => "No pool that served every request was faster by more than 5 %: the allocator does as well here."
            .into(),
    }
}

/// How sure it is.
fn sure(advice: &Advice) -> String {
    let choice = &advice.choice;
    let word = match choice.sure {
        0.95.. => "sure",
        0.8.. => "fairly sure",
        _ => "not sure; measure longer, with --seconds, on a machine with nothing else to do",
    };
    let mut text = format!(
        "The choice is within 5 % of the fastest in {} of 1000 resamplings of the processes: {word}.",
        (choice.sure * 1000.0).round()
    );
    if let (Some(other), Some(beats)) = (choice.runner_up, choice.beats_runner_up) {
        let _ = write!(
            text,
            " The next best by the same rule is {}. The choice is faster than that in {} of 1000.",
            advice.entries[other].candidate,
            (beats * 1000.0).round()
        );
    }
    let names: Vec<String> =
        choice.as_good.iter().map(|one| advice.entries[*one].candidate.to_string()).collect();
    if !names.is_empty() {
        let _ = write!(text, " No difference to these could be measured: {}.", names.join("; "));
    }
    text
}

/// Everything, for a terminal.
pub(crate) fn text(advice: &Advice) -> String {
    let mut text = format!(
        "{}: {} requests of {} threads, replayed by {} on {} ({}).\n",
        advice.name,
        advice.replayed,
        advice.threads,
        if advice.workers == 1 { "one worker".into() } else { format!("{} workers", advice.workers) },
        advice.host.cpu,
        advice.host.date,
    );
    if advice.replayed < advice.acquires {
        let _ = writeln!(
            text,
            "The trace has {} requests. Its first part was replayed, without empty buffers.",
            advice.acquires
        );
    }
    if advice.crossing > 0.0 && advice.crossing_kept < 0.995 {
        let _ = writeln!(
            text,
            "Of the buffers that were released on another thread, {} crossed threads in the timed replay too.",
            percent(advice.crossing_kept)
        );
    }
    let _ = writeln!(text, "{}", table(advice));
    let _ = writeln!(
        text,
        "Time is that of all threads together for a request and its release, without their waits: medians over the processes of\ninterleaved rounds. Tail is the time of single requests with their releases, clock included. Refusals and memory are those of a\nreplay in the recorded order, by as many threads as were recorded. Candidates of stage 3 were timed longest."
    );
    for reason in &advice.left_out {
        let _ = writeln!(text, "Left out: {reason}.");
    }
    let pick = advice.pick();
    let _ = writeln!(text, "\nTake {}.\n", pick.candidate);
    for line in advice.code.lines() {
        let _ = writeln!(text, "    {line}");
    }
    let _ = write!(text, "\nCost: {} a request", time(pick.times.median));
    if let Some(tail) = &pick.tail {
        let _ = write!(text, ", p99 {}, p99.9 {}", time(f64::from(tail.p99)), time(f64::from(tail.p999)));
    }
    let _ = writeln!(
        text,
        "; {} of memory at its peak, {} held; {} refused, {} served by allocations of their own.",
        memory(pick.bytes()),
        memory(pick.counted.reserved_bytes as u64),
        percent(pick.refused),
        percent(pick.apart),
    );
    for reason in &advice.why {
        let _ = writeln!(text, "- {reason}");
    }
    let _ = writeln!(text, "- {}", sure(advice));
    text
}

/// What the check found.
pub(crate) fn check(advice: &Advice, check: &Check) -> String {
    format!(
        "Check: all {} candidates in {} processes. The fastest is {} with {}; the first choice, {}, took {}: {:.3} times as long.",
        advice.entries.len(),
        check.processes,
        advice.entries[check.best].candidate,
        time(check.medians[check.best]),
        advice.pick().candidate,
        time(check.medians[advice.choice.pick]),
        check.ratio,
    )
}

fn table(advice: &Advice) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    if !std::io::stdout().is_terminal() {
        table.force_no_tty();
    }
    table.set_header([
        "candidate",
        "time",
        "10 % to 90 %",
        "p50",
        "p99",
        "p99.9",
        "memory",
        "held",
        "refused",
        "apart",
        "stage",
    ]);
    let mut order: Vec<&Entry> = advice.entries.iter().collect();
    order.sort_by(|one, other| {
        let group = |entry: &Entry| (!entry.serves_all(), core::cmp::Reverse(entry.stage));
        group(one).cmp(&group(other)).then(one.times.median.total_cmp(&other.times.median))
    });
    for entry in order {
        let chosen = entry.id == advice.pick().id;
        let name = if chosen { format!("→ {}", entry.candidate) } else { format!("  {}", entry.candidate) };
        let name = Cell::new(name);
        let tail = |pick: fn(&crate::harness::record::Tail) -> u32| {
            entry.tail.as_ref().map_or_else(String::new, |tail| time(f64::from(pick(tail))))
        };
        let times = &entry.times;
        let cells = [
            time(times.median),
            format!("{} to {}", time(times.p10), time(times.p90)),
            tail(|tail| tail.p50),
            tail(|tail| tail.p99),
            tail(|tail| tail.p999),
            memory(entry.bytes()),
            memory(entry.counted.reserved_bytes as u64),
            percent(entry.refused),
            percent(entry.apart),
            entry.stage.to_string(),
        ];
        let cells = cells.map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
        let name = if chosen { name.add_attribute(Attribute::Bold) } else { name };
        table.add_row(std::iter::once(name).chain(cells));
    }
    table
}

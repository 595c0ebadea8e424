//! The advice in words.

use super::choice::{NOTICED, Prices};
use super::entry::Entry;
use super::record::Advice;
use super::traffic::{LEAST_BUFFERS, MARGIN};
use super::{memory_chart, strategies, table};
use crate::drawing::number::{exact_memory, percent, processor, three_digits, time};

/// Says why there is no choice: the limit of memory leaves none, or none served all requests.
pub(crate) fn nothing(entries: &[Entry], prices: &Prices) -> String {
    let serving = entries.iter().filter(|entry| entry.serves_all());
    match (serving.min_by_key(|entry| entry.bytes()), prices.memory_limit) {
        (Some(least), Some(limit)) => format!(
            "No candidate takes at most {}. The least is {}, of `{}`.",
            exact_memory(limit),
            exact_memory(least.bytes()),
            least.candidate
        ),
        _ => "No candidate served all requests.".into(),
    }
}

/// Says the reasons: which rule chose, and how the choice compares.
pub(crate) fn why(advice: &Advice) -> Vec<String> {
    let pick = advice.pick();
    let mut why = vec![rule(advice), reason(pick, advice)];
    if !pick.candidate.is_control() && !pick.candidate.one_per_thread() && advice.threads > advice.workers {
        why.push(format!(
            "The program's {} threads shared the caches of {} in the timed replay, so the strategy may be slower in the program. Refusals and \
             memory are those of all threads.",
            advice.threads, advice.workers,
        ));
    }
    compared(advice, &mut why);
    why.push(margin(advice));
    why
}

/// Says which rule chose.
fn rule(advice: &Advice) -> String {
    let limit = advice.prices.memory_limit.map_or_else(String::new, |limit| {
        format!(" Candidates that take more than {} are out.", exact_memory(limit))
    });
    format!(
        "The rule: of the candidates whose time nobody would notice, which is less than {} of a processor more than that of the fastest, or \
         less than 5 % more, the one with the least memory.{limit}",
        percent(NOTICED)
    )
}

/// Says what the traffic means for the strategy.
fn reason(pick: &Entry, advice: &Advice) -> String {
    let needs = &advice.needs;
    let own = format!("{} with {}", needs.own_live, exact_memory(needs.own_bytes as u64));
    if let Some(reason) = pick.candidate.in_table().and_then(|strategy| strategy.reason) {
        return reason.replace("{own}", &own);
    }
    if advice.choice.no_pool {
        return format!(
            "No pool would help: the best one saves less than {} of a processor, or less than 5 % of the time, and no memory. Memory counts as \
             saved if it is more than 5 % and more than 64 KiB.",
            percent(NOTICED)
        );
    }
    let name = pick.candidate.strategy();
    format!("`{name}` is an `AnyPool` by its name. Its own documentation describes it.")
}

/// Says how the choice compares with what there is without a pool.
fn compared(advice: &Advice, why: &mut Vec<String>) {
    let (pick, entries) = (advice.pick(), &advice.entries);
    for strategy in [strategies::VEC, strategies::HEAP] {
        let control = entries.iter().find(|entry| entry.candidate.strategy() == strategy);
        if let Some(control) = control.filter(|control| control.candidate != pick.candidate) {
            why.push(format!(
                "It takes {} times the time of `{strategy}`, which is {} of a processor, and {} of memory to its {}.",
                three_digits(pick.times.median / control.times.median),
                processor(control.processor),
                exact_memory(pick.bytes()),
                exact_memory(control.bytes()),
            ));
        }
    }
}

/// Says which room is left, and what happens beyond it.
fn margin(advice: &Advice) -> String {
    let (pick, room) = (advice.pick(), &advice.room);
    if pick.candidate.is_control() {
        return format!("Beyond the recorded traffic, {}.", advice.beyond);
    }
    format!(
        "The settings have room for {MARGIN} times what was out at once, and for {LEAST_BUFFERS} buffers at least: for {} buffers with {} in \
         all, and for {} with {} of one acquiring thread. A replay with twice the connections on each thread was served without refusals, with {} \
         of memory. Beyond that, {}.",
        room.live,
        exact_memory(room.bytes as u64),
        room.own_live,
        exact_memory(room.own_bytes as u64),
        exact_memory(pick.twice.bytes()),
        advice.beyond,
    )
}

/// Says how sure the choice is.
pub(crate) fn sure(advice: &Advice) -> String {
    let choice = &advice.choice;
    let word = match choice.sure {
        0.95.. => "sure",
        0.8.. => "fairly sure",
        _ => "not sure; measure longer, with --seconds, on a machine with nothing else to do",
    };
    format!(
        "The choice is as near the fastest as the rule asks in {} of 1000 resamplings of the processes: {word}.",
        (choice.sure * 1000.0).round()
    )
}

/// Says the answer, in a line.
pub(crate) fn answer(advice: &Advice) -> String {
    let no_pool = if advice.choice.no_pool { "No pool would help. " } else { "" };
    format!("{no_pool}Take `{}`.", advice.pick().candidate)
}

/// Says what the choice costs.
pub(crate) fn cost(advice: &Advice) -> String {
    let pick = advice.pick();
    format!(
        "Cost: {} a request, {} of a processor; {} of memory at its peak, {} times the {} that are out at most; {} reserved.",
        time(pick.times.median),
        processor(pick.processor),
        exact_memory(pick.bytes()),
        three_digits(pick.bytes() as f64 / advice.needs.bytes.max(1) as f64),
        exact_memory(advice.needs.bytes as u64),
        exact_memory(pick.counted.reserved_bytes as u64),
    )
}

/// Says what was replayed, and where.
pub(crate) fn headline(advice: &Advice) -> String {
    format!(
        "{}: {} of {} requests of {} threads, replayed by {} workers on {} ({}).",
        advice.name,
        advice.replayed,
        advice.acquires,
        advice.threads,
        advice.workers,
        advice.machine,
        advice.date,
    )
}

/// Writes all of the advice as text.
pub(crate) fn text(advice: &Advice) -> String {
    let mut text = headline(advice) + "\n";
    let mut line = |words: String| {
        text.push_str(&words);
        text.push('\n');
    };
    line(table::all(advice).to_string());
    line(table::LEGEND.into());
    line("\nThe trade-off. Each row takes less memory than the one above it, and more time:".into());
    line(table::front(advice).to_string());
    line(format!("\n{}\n", answer(advice)));
    for code in advice.code.lines() {
        line(if code.is_empty() { String::new() } else { format!("    {code}") });
    }
    line(format!("\n{}", cost(advice)));
    for reason in &advice.why {
        line(format!("- {reason}"));
    }
    line(format!("- {}", memory_chart::sentence(&advice.memory)));
    line(format!("- {}", sure(advice)));
    text
}

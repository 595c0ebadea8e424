//! The verdicts by call site in words.

use std::fmt::Write;

use super::choice::NOTICED;
use super::per_site::{Certainty, Cost, Verdict};
use super::strategies;
use crate::drawing::number::{exact_memory, memory, percent, processor, share, three_digits, time};

/// Writes all verdicts as text.
pub(super) fn text(verdicts: &[Verdict]) -> String {
    if verdicts.is_empty() {
        return String::new();
    }
    let mut text = "\nThe call sites that request most, each replayed by itself:\n".to_owned();
    for (number, verdict) in (1..).zip(verdicts) {
        let lines = verdict.call_site.lines();
        let _ = writeln!(text, "\n{number}. {}", lines.replace('\n', "\n   "));
        for line in lines_of(verdict) {
            let _ = writeln!(text, "   - {line}");
        }
    }
    text
}

/// Writes the lines of one verdict.
pub(super) fn lines_of(verdict: &Verdict) -> [String; 4] {
    [requests(verdict), now(verdict), choice(verdict), sure(verdict)]
}

fn requests(verdict: &Verdict) -> String {
    let (one, site) = (&verdict.call_site, &verdict.call_site.site);
    let error = match verdict.requests_per_second_error {
        0.0 => String::new(),
        error => format!(" ± {}", three_digits(error)),
    };
    let lives = match one.median_lifetime() {
        Some(time) => format!("half live up to {time}"),
        None => "none was released".into(),
    };
    format!(
        "It makes {}{error} requests a second, of {} on average: {} of all bytes, and {} of what is held. Of the objects {lives}, {} \
         grow, and {} are requested as zeros.",
        three_digits(verdict.requests_per_second),
        memory(one.mean_bytes()),
        share(verdict.share_of_bytes),
        share(verdict.share_of_held),
        one.of_requests(site.grown),
        one.of_requests(site.zeroed),
    )
}

fn cost(cost: &Cost) -> String {
    let times = &cost.times;
    format!(
        "{} a request ({} to {}), which is {} of a processor",
        time(times.median),
        time(times.p10),
        time(times.p90),
        processor(cost.processor)
    )
}

fn now(verdict: &Verdict) -> String {
    let now = &verdict.now;
    let (what, steps) = if verdict.largest_at_once.is_some() {
        let steps = three_digits(verdict.allocations_per_request);
        ("Allocating and growing", format!(" That is {steps} allocations a request; copying is not counted."))
    } else {
        ("Allocating", String::new())
    };
    let zeros = if now.settings.strategy() == strategies::HEAP { " zeros" } else { "" };
    format!("{what}{zeros} takes {}, with {} of memory.{steps}", cost(now), exact_memory(now.bytes))
}

fn choice(verdict: &Verdict) -> String {
    let Some(choice) = &verdict.choice else {
        return "No candidate is within the limit of memory.".into();
    };
    let saved = format!("{} ± {}", processor(verdict.saved), processor(verdict.saved_error));
    if !verdict.no_pool {
        return format!(
            "Take `{}`: {}, with {} of memory. It saves {saved} of a processor.",
            choice.settings,
            cost(choice),
            exact_memory(choice.bytes)
        );
    }
    let no_pool =
        format!("No pool would help: the best one saves less than {} of a processor", percent(NOTICED));
    match &verdict.largest_at_once {
        Some(_) if verdict.saved > NOTICED => format!(
            "No pool would help more than a request for the largest size at once. That takes {}, and saves {saved} of a processor.",
            cost(choice)
        ),
        _ => format!("{no_pool}, or less than 5 % of the time, and no memory."),
    }
}

fn sure(verdict: &Verdict) -> String {
    let samples = verdict.call_site.site.samples;
    let sampled = format!("it rests on {samples} objects");
    match verdict.sure {
        Certainty::Sure => format!("Sure: {sampled}."),
        Certainty::FairlySure => format!("Fairly sure: {sampled}."),
        Certainty::FewSamples => format!("Not sure: {sampled} only. Record for longer, or with a smaller `rate`."),
        Certainty::MayNotBeNoticed => format!(
            "Not sure: with its error, what is saved may be more or less than {} of a processor, which somebody would notice.",
            percent(NOTICED)
        ),
        Certainty::Noisy => "Not sure: the replays differ too much. Measure longer, with --seconds, on a machine with nothing else to do.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::entry::Times;
    use crate::call_sites::CallSite;

    fn cost(settings: &str, nanos: f64, processor: f64) -> Cost {
        let times = Times { median: nanos, p10: nanos, p90: nanos, processes: 7 };
        Cost { settings: settings.parse().unwrap(), times, processor, bytes: 64 << 10 }
    }

    fn verdict(now: Cost, choice: Cost) -> Verdict {
        let mut call_site = CallSite::default();
        let site = &mut call_site.site;
        (site.samples, site.count, site.bytes, site.zeroed) = (40, 4000.0, 4_096_000.0, 4000.0);
        Verdict {
            call_site,
            requests_per_second: 2000.0,
            requests_per_second_error: 60.0,
            share_of_bytes: 0.5,
            share_of_held: 0.01,
            allocations_per_request: 1.0,
            largest_at_once: None,
            no_pool: choice.settings.is_control(),
            saved: now.processor - choice.processor,
            saved_error: 0.001,
            now,
            choice: Some(choice),
            sure: Certainty::FairlySure,
        }
    }

    #[test]
    fn a_pool_is_named_with_what_it_saves() {
        let text = text(&[verdict(cost("heap", 5000.0, 0.01), cost("shard", 50.0, 0.0001))]);
        for part in
            ["It makes 2000 ± 60.0 requests a second, of 1 KiB", "It saves 0.99 % ± 0.10 % of a processor."]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn no_pool_is_an_answer() {
        let mut verdict = verdict(cost("vec", 50.0, 0.0001), cost("vec", 50.0, 0.0001));
        assert!(choice(&verdict).starts_with("No pool would help: "), "{}", choice(&verdict));
        // Growth costs, and a pool is not what saves it.
        (verdict.now, verdict.saved) = (cost("vec", 900.0, 0.0201), 0.02);
        verdict.largest_at_once = verdict.choice.clone();
        let words = choice(&verdict);
        assert!(
            words.starts_with("No pool would help more than a request for the largest size at once."),
            "{words}"
        );
        verdict.choice = None;
        assert!(choice(&verdict).contains("limit of memory"));
    }
}

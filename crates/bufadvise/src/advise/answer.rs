//! The answer in words: the verdict, what it saves, how sure it is and why.

use std::fmt::Write;

use serde::Serialize;

use super::study::{Study, Tried, Verdict};
use super::verdict::{Compared, LEAST_REQUESTS, LEAST_SAMPLES, LEAST_SECONDS, NOTICED, Program, Requests};
use crate::call_sites::CallSite;
use crate::number::{memory, percent, share, time};
use crate::print;

/// The version of [`Answer`]. It rises with every change that a reader could stumble over.
pub(crate) const SCHEMA: u32 = 8;

/// From this share of the bytes on, large blocks are worth an allocator of their own.
const MOSTLY_LARGE: f64 = 0.5;
/// All of it, as the JSON has it.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    pub(crate) schema: u32,
    /// The name of the program, or of its trace.
    pub(crate) name: String,
    /// How much is in the recording, how it ends, and what is not in it.
    pub(crate) recorded: String,
    pub(crate) program: Program,
    pub(crate) is_rust: bool,
    /// What may be behind few requests.
    #[serde(skip)]
    pub(crate) why_few: String,
    pub(crate) requests: Requests,
    #[serde(flatten)]
    pub(crate) study: Study,
    /// The pool as Rust, if the program is Rust.
    pub(crate) code: Option<String>,
    pub(crate) call_sites: Vec<SiteAnswer>,
}

/// A call site that requests much.
#[derive(Debug, Serialize)]
pub(crate) struct SiteAnswer {
    #[serde(flatten)]
    pub(crate) call_site: CallSite,
    pub(crate) share_of_bytes: f64,
}

/// Writes the answer as text.
pub(crate) fn text(answer: &Answer) -> String {
    let study = &answer.study;
    let mut text = match (study.verdict, &study.why) {
        (Verdict::TooLarge, Some(why)) => format!("Too large to try: {why}.\n"),
        (Verdict::NoAnswer, Some(why)) => {
            let more = "Give it more time, with --seconds, or another limit of memory.\n";
            format!("No answer: {why}.\n{}", if why.contains(" failed: ") { "" } else { more })
        }
        _ => format!("{}\n{}\n{}\n", verdict(answer), saves(answer), sure(answer)),
    };
    if study.verdict == Verdict::Pool
        && let Some((best, _)) = study.best()
        && let Some(beyond) = best.settings.in_table().map(|strategy| strategy.beyond)
    {
        let _ = writeln!(text, "With more buffers in use than were recorded, {beyond}.");
    }
    if answer.is_rust && study.verdict != Verdict::TooShort && answer.requests.large_share >= MOSTLY_LARGE {
        let share = percent(answer.requests.large_share);
        let _ = writeln!(
            text,
            "{share} of the bytes are requested in blocks of 32 KiB and more. `bufalloc` as the global allocator serves these with no other change of the program, and gives back what is idle."
        );
    }
    for (one, why) in study.tried.iter().filter_map(|one| Some((one, failure(one)?))) {
        let _ = writeln!(text, "Not compared: `{}` {why}.", one.settings);
    }
    let _ = writeln!(text, "Recorded: {}", answer.recorded);
    if !answer.call_sites.is_empty() {
        text += "\nThe pool is for all call sites together. Those that request most:\n";
    }
    for (number, SiteAnswer { call_site, share_of_bytes }) in (1..).zip(&answer.call_sites) {
        let lines = call_site.lines().replace('\n', "\n   ");
        let (share, mean) = (percent(*share_of_bytes), memory(call_site.mean_bytes()));
        let _ = writeln!(text, "{number}. {lines}\n   {share} of all bytes, {mean} on average.");
    }
    if let Some(code) = &answer.code {
        let _ = write!(text, "\n{code}");
    }
    text
}

/// Returns why a candidate was dropped, if that is what it did, not what it needs.
fn failure(one: &Tried) -> Option<&str> {
    one.dropped
        .as_deref()
        .filter(|why| !["had no room", "takes more"].iter().any(|need| why.starts_with(need)))
}

fn verdict(answer: &Answer) -> String {
    match (answer.study.verdict, answer.study.best()) {
        (Verdict::Pool, Some((best, _))) => format!("A pool would help: `{}`.", best.settings),
        (Verdict::TooShort, _) if answer.requests.count == 0.0 => "Nothing to say.".into(),
        (Verdict::TooShort, _) => "Too short to say.".into(),
        _ => "No pool would help.".into(),
    }
}

/// Says what is saved, or what was found in place of that.
fn saves(answer: &Answer) -> String {
    let (study, program) = (&answer.study, &answer.program);
    match (study.verdict, study.best()) {
        (Verdict::TooShort, _) if answer.requests.count == 0.0 => "No request was recorded.".into(),
        (Verdict::TooShort, None) => ran(answer),
        (Verdict::TooShort, Some((best, compared))) => {
            let saved = seconds(compared.saved, program);
            format!("{} `{}` saves {saved} in their replay.", ran(answer), best.settings)
        }
        (Verdict::Pool, Some((_, compared))) => {
            format!("It saves {}. {}", seconds(compared.saved, program), costs(answer, compared))
        }
        (_, Some((best, compared))) => {
            let costs = costs(answer, compared);
            format!("The best pool, `{}`, saves {}. {costs}", best.settings, seconds(compared.saved, program))
        }
        (_, None) => {
            let ran = if answer.requests.are_few() { ran(answer) + " " } else { String::new() };
            let takes = seconds(study.now_share, program);
            format!("{ran}All its requests together take {takes}, and a pool saves less than that.")
        }
    }
}

fn ran(answer: &Answer) -> String {
    let (time, requests) = (time(answer.program.ran_seconds * 1e9), counted(&answer.requests));
    format!("The recording is {time} long, with {requests}.")
}

/// Says how much of the program's time a share is.
fn seconds(share: f64, program: &Program) -> String {
    let all = program.time() * 1e9;
    if share <= 0.0 {
        return "no time".into();
    }
    format!("{} of the program's processor time ({} of {})", percent(share), time(share * all), time(all))
}

/// Says what a pool costs in memory, and where the program requests zeros.
fn costs(answer: &Answer, compared: &Compared) -> String {
    let zeroing = match answer.requests.zeroing(&answer.program) {
        ..0.001 => String::new(),
        share => format!("Zeroing its buffers takes {}, which is subtracted. ", percent(share)),
    };
    let memory = match compared.price {
        0.0 => "It takes no more memory at the peak.".into(),
        price => {
            let (more, price) = (memory(compared.more_bytes), percent(price));
            format!("It takes {more} more memory, the price of which is {price} of the time.")
        }
    };
    zeroing + &memory
}

/// Says how sure the answer is, and why.
fn sure(answer: &Answer) -> String {
    let (study, few) = (&answer.study, answer.why_few.clone());
    let (Requests { replayed, samples, error, .. }, requests) = (answer.requests, counted(&answer.requests));
    // A sample may be replayed as several requests.
    let is_less = answer.requests.are_a_part() && (error < 1.0 || replayed < samples);
    let part = if is_less { format!("{replayed} of ") } else { String::new() };
    let (word, more) = study.why.as_ref().map_or(("Sure", "".into()), |why| ("Not sure", format!("{why}. ")));
    let more = if answer.requests.are_few() { more + &few } else { more };
    match (study.verdict, study.best()) {
        (Verdict::TooShort, Some(_)) => {
            let exact = if error > 0.0 { ", or with --settings exact" } else { "" };
            format!(
                "To recommend a pool takes {LEAST_REQUESTS:.0} requests and {LEAST_SAMPLES} samples of them. Record it for longer{exact}. {few}"
            )
        }
        (Verdict::TooShort, None) if answer.requests.replayed == 0 => few,
        (Verdict::TooShort, None) => format!("An answer needs a recording of {LEAST_SECONDS:.0} s. {few}"),
        (_, None) => {
            format!("{word}: the replay without a pool had {part}{requests}. {more}").trim_end().to_owned()
        }
        (_, Some((_, compared))) => {
            let rounds = print::count(compared.rounds as u64, "round");
            let (least, most) = (compared.least.max(0.0), compared.most);
            let range = |less: f64| format!("{} to {}", share(least - less), share(most - less));
            let mut saved = if most <= 0.0 { "nothing".into() } else { range(0.0) };
            if compared.price > 0.0 && most > 0.0 {
                saved += &format!(" ({} after the price of its memory)", range(compared.price));
            }
            // A pool's first touches are more of a part than of all.
            let is_more = answer.requests.are_a_part() && study.verdict == Verdict::Pool;
            let all = if is_more { ", and may save more of all" } else { "" };
            format!(
                "{word}: it saved {saved} in {rounds} of replays, of {part}{requests}{all}. Users notice {}. {more}",
                percent(NOTICED)
            )
            .trim_end()
            .to_owned()
        }
    }
}

/// Says how many requests there are, unless there may be as many small ones without a sample.
fn counted(requests: &Requests) -> String {
    let Requests { count, error, samples, .. } = *requests;
    match error {
        ..0.001 => print::count(count.round() as u64, "request"),
        1.0.. => print::count(samples as u64, "sample") + " of its requests",
        error => {
            let least = (count * (1.0 - error)).max(samples as f64);
            format!("{least:.0} to {:.0} requests", count * (1.0 + error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::replay::Replayed;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn answer(verdict: Verdict, compared: Option<Compared>) -> Answer {
        let replayed = Some(Replayed { bytes: 30 * MIB, ..Replayed::default() });
        let settings = "slot:slots=16".parse().expect("settings");
        let fast = Tried { settings, replayed, compared, dropped: None };
        let slow = Tried {
            settings: "ring".parse().expect("settings"),
            replayed: None,
            compared: None,
            dropped: Some("took longer than 2.0 s".into()),
        };
        Answer {
            schema: SCHEMA,
            name: "app".into(),
            recorded: "9000 objects, 0 lost; complete.".into(),
            program: Program { ran_seconds: 10.0, seconds: 10.0, ..Program::default() },
            is_rust: true,
            why_few: "Why few.".into(),
            requests: Requests { count: 4000.0, samples: 4000, replayed: 4000, ..Requests::default() },
            study: Study {
                verdict,
                is_sure: true,
                now: Replayed { bytes: 10 * MIB, ..Replayed::default() },
                now_share: 0.003,
                tried: if compared.is_some() { vec![fast, slow] } else { Vec::new() },
                why: None,
            },
            code: None,
            call_sites: Vec::new(),
        }
    }

    fn saving(saved: f64, price: f64) -> Option<Compared> {
        Some(Compared { more_bytes: 20 * MIB, ..Compared::of_equal_rounds(saved, price) })
    }

    #[test]
    fn the_verdict_comes_first_then_the_saving_then_how_sure() {
        let text = text(&answer(Verdict::Pool, saving(0.12, 0.02)));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "A pool would help: `slot:slots=16`.");
        assert_eq!(
            lines[1],
            "It saves 12.0 % of the program's processor time (1.20 s of 10.0 s). It takes 20.0 MiB more memory, the price of which is 2.0 % of the time."
        );
        assert_eq!(
            lines[2],
            "Sure: it saved 12.0 % to 12.0 % (10.0 % to 10.0 % after the price of its memory) in 5 rounds of replays, of 4000 requests. Users notice 3.0 %."
        );
        assert!(lines[3].contains("fall back to the heap"), "{text}");
        assert_eq!(lines[4], "Not compared: `ring` took longer than 2.0 s.");
        assert_eq!(lines[5], "Recorded: 9000 objects, 0 lost; complete.");
    }

    #[test]
    fn a_part_that_was_replayed_is_named() {
        let mut part = answer(Verdict::Pool, saving(0.12, 0.0));
        (part.requests.replayed, part.requests.work) = (512, 10.0);
        let lines = text(&part);
        assert!(lines.contains(" replays, of 512 of 4000 requests, and may save more of all."), "{lines}");
        (part.requests.samples, part.requests.error) = (1, 2.0);
        let lines = text(&part);
        assert!(lines.contains(" replays, of 1 sample of its requests, and may save"), "{lines}");
        (part.requests.samples, part.requests.error) = (3900, 0.5);
        assert!(text(&part).contains(", of 512 of 3900 to 6000 requests, "), "{}", text(&part));
        let mut large = answer(Verdict::TooLarge, None);
        large.study.why = Some("9 buffers were in use".into());
        let lines = text(&large);
        assert!(lines.starts_with("Too large to try: 9 buffers were in use.\nRecorded: "), "{lines}");
        large.study.verdict = Verdict::NoPool;
        assert!(text(&large).contains(" had 4000 requests. 9 buffers were in use.\n"), "{}", text(&large));
    }

    #[test]
    fn no_pool_has_its_reason() {
        let lines = text(&answer(Verdict::NoPool, None));
        assert!(lines.starts_with("No pool would help.\nAll its requests together take 0.3 % of"), "{lines}");
        let mut few = answer(Verdict::NoPool, None);
        (few.requests.count, few.requests.replayed) = (34.0, 34);
        let few = text(&few);
        let asked = "\nThe recording is 10.0 s long, with 34 requests. All its requests together take 0.3 %";
        let hint = "\nSure: the replay without a pool had 34 requests. Why few.\n";
        assert!(few.contains(asked) && few.contains(hint) && !lines.contains("Why few"), "{few}");
        let lines = text(&answer(Verdict::NoPool, saving(-0.1, 0.0)));
        assert!(lines.contains("The best pool, `slot:slots=16`, saves no time."), "{lines}");
    }

    #[test]
    fn short_recordings_and_failures_are_no_verdict() {
        let mut short = answer(Verdict::TooShort, None);
        (short.program.ran_seconds, short.requests.count) = (0.25, 1.0);
        let lines = text(&short);
        let long = "The recording is 250 ms long, with 1 request.\nAn answer needs a recording of 1 s. Why";
        assert!(lines.starts_with(&format!("Too short to say.\n{long}")), "{lines}");
        (short.requests.count, short.requests.replayed) = (0.0, 0);
        let lines = text(&short);
        assert!(lines.starts_with("Nothing to say.\nNo request was recorded.\nWhy few.\n"), "{lines}");
        let mut failed = answer(Verdict::NoAnswer, None);
        failed.study.why = Some("the replay took longer than 9.0 s".into());
        let lines = text(&failed);
        assert!(lines.starts_with("No answer: the replay took longer than 9.0 s.\nGive it"), "{lines}");
        failed.study.why = Some("the replay failed: Too many open files".into());
        assert!(!text(&failed).contains("Give it"), "time is not what it lacks");
    }
}

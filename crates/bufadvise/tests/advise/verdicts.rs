//! Answers for heap recordings: what the program's own page faults say, and its call sites.

use core::time::Duration;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use buftrace::hooks;
use serde_json::Value;

use super::heap::{functions, memory, recorded, recorded_by};
use super::{advise, code, folder, json, printed};

/// The C library gives so large a buffer back at once: each is faulted in again.
const LARGE: usize = 40 << 20;

#[inline(never)]
fn decodes_a_frame(number: usize, touches: bool) {
    hooks::allocated(memory(number), LARGE, false);
    let frame = vec![1_u8; if touches { LARGE } else { 1 }];
    core::hint::black_box(&frame);
    hooks::freed(memory(number));
}

#[inline(never)]
fn requests_seldom(number: usize) {
    hooks::allocated(memory(number), 600, false);
    hooks::freed(memory(number));
    core::hint::black_box(());
}

/// A program of a second and more that decodes frames.
fn frames(name: &str, touches: bool) -> PathBuf {
    recorded(folder(name).join("app.heap"), || {
        for number in 1..=110 {
            decodes_a_frame(number, touches);
            if number % 10 == 0 {
                requests_seldom(1000 + number);
                thread::sleep(Duration::from_millis(100));
            }
        }
    })
}

/// Of what is in use at once, a replay has half and less: more page faults would be in the rest.
#[test]
fn no_pool_for_a_part_is_not_sure() {
    let path = recorded(folder("held").join("app.heap"), || {
        for number in 1..=2000 {
            hooks::allocated(memory(number), 1 << 20, false);
        }
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(1500) {
            core::hint::spin_loop();
        }
        hooks::freed(memory(1));
    });
    let answer = advised(&path);
    assert_eq!((&answer["verdict"], &answer["is_sure"]), (&"no_pool".into(), &false.into()), "{answer}");
    assert!(answer["why"].as_str().is_some_and(|why| why.contains("has 512 buffers")), "{answer}");
}

fn advised(path: &std::path::Path) -> Value {
    let output = advise(path, &["--json", "--seconds", "60"]);
    assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    json(&output)
}

#[test]
#[cfg(target_env = "gnu")]
fn a_pool_helps_at_a_call_site() {
    let path = frames("frames", true);
    let answer = advised(&path);
    assert_eq!(answer["verdict"], "pool", "{answer}");
    // All frames are faulted in now, and a few with a pool.
    assert!(answer["program"]["faults"].as_u64().is_some_and(|faults| faults > 1_000_000), "{answer}");
    let sites = answer["call_sites"].as_array().expect("call sites");
    let sites: Vec<_> = sites.iter().map(|site| (functions(site), &site["share_of_bytes"])).collect();
    assert!(sites.len() == 2 && sites[0].1.as_f64() > Some(0.9), "{sites:?}");
    assert!(sites[0].0.iter().any(|function| function.ends_with("::decodes_a_frame")), "{sites:?}");
    // This program is Rust.
    assert!(answer["code"].is_string(), "{answer}");
}

/// Small requests in front of the frames, and one in ten of the frames, are replayed.
#[test]
#[cfg(target_env = "gnu")]
fn a_part_saves_as_much_as_it_costs() {
    let path = recorded(folder("part").join("app.heap"), || {
        (1..=60).for_each(requests_seldom);
        for number in 1..=240 {
            decodes_a_frame(number, true);
            thread::sleep(Duration::from_millis(2));
        }
    });
    let answer = advised(&path);
    assert_eq!(
        (&answer["verdict"], &answer["requests"]["replayed"]),
        (&"pool".into(), &84.into()),
        "{answer}"
    );
    // A tenth of the frames, and not 84 of 300 requests.
    let program = answer["program"]["processor_seconds"].as_f64().expect("a time");
    let now = answer["now"]["nanos"].as_f64().expect("a time") / 1e9;
    let share = answer["now_share"].as_f64().expect("a share") * program / now;
    assert!((8.0..=10.1).contains(&share), "{share}: {answer}");
}

/// A replay that faults pages which the program had for itself saves nothing of the program.
#[test]
fn faults_that_the_program_did_not_have_are_not_saved() {
    let path = frames("warm", false);
    let answer = advised(&path);
    assert_eq!(answer["verdict"], "no_pool", "{answer}");
    assert!(answer["now"]["faults"].as_u64().is_some_and(|faults| faults > 100_000), "{answer}");
    let words = printed(&advise(&path, &["--seconds", "60"]));
    assert!(words.starts_with("No pool would help.\n"), "{words}");
    assert!(!words.contains("call sites"), "nothing is to be said of them: {words}");
}

/// As `sort`: one request for more memory than the program uses, and small ones, hardly any of which
/// is a sample. What recommends a pool needs more; what does not has enough.
#[test]
fn few_samples_are_no_number_of_requests() {
    let path = recorded_by("", folder("sampled").join("app.heap"), || {
        (1..=100).for_each(requests_seldom);
        hooks::allocated(memory(1), 640 << 20, true);
        hooks::freed(memory(1));
        // A run that requests nothing more is as long.
        thread::sleep(Duration::from_millis(1100));
    });
    let answer = advised(&path);
    assert!(answer["now_share"].as_f64() > Some(0.03), "pools are compared: {answer}");
    assert_eq!((&answer["verdict"], &answer["is_sure"]), (&"no_pool".into(), &true.into()), "{answer}");
    // Of no buffer, more is touched than the program had.
    let bytes = |of: &str| answer[of]["bytes"].as_u64().expect("memory");
    // A pool zeroes all of it.
    assert_eq!(answer["requests"]["zeroed_bytes"], f64::from(640 << 20), "{answer}");
    assert!(bytes("now") < bytes("program") + (4 << 20) && bytes("program") < 500 << 20, "{answer}");
    let words = printed(&advise(&path, &["--seconds", "60"]));
    let samples = format!(" of replays, of {} sample", answer["requests"]["samples"]);
    assert!(words.contains(&samples) && words.contains(" of its requests. Users"), "{words}");
}

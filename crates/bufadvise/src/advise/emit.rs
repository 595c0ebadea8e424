//! The choice as a program takes it in: as Rust, as text for `AnyBuilder`, as TOML; and the way
//! back.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use bufworks::any::{AnyBuilder, HeapBuilder};

use super::candidate::{Candidate, pool};
use super::known::Owner;
use super::record::Advice;

/// What the choice is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Constants, and a function that builds the pool
    Rust,
    /// A line that `AnyBuilder` reads
    Text,
    /// A table that `AnyBuilder` reads
    Toml,
}

impl Form {
    /// Returns the choice, with a line on where it is from.
    pub(crate) fn write(self, advice: &Advice) -> String {
        self.written(&advice.pick().candidate, advice.choice.no_pool, &advice.name)
    }

    fn written(self, pick: &Candidate, no_pool: bool, trace: &str) -> String {
        let start = if no_pool { "No pool would help; chosen" } else { "Chosen" };
        let version = env!("CARGO_PKG_VERSION");
        let head =
            format!("{start} by bufadvise {version} for the trace {}.", trace.replace(['\n', '\r'], " "));
        match self {
            Self::Rust => format!("//! {head}\n\n{}", self.code(pick)),
            Self::Text => self.code(pick),
            Self::Toml => format!("# {head}\n{}", self.code(pick)),
        }
    }

    /// Returns the settings alone.
    pub(crate) fn code(self, pick: &Candidate) -> String {
        // Without a pool, `AnyBuilder` has the heap.
        let builder = match *pick {
            Candidate::Pool(builder) => builder,
            Candidate::Vec => AnyBuilder::Heap(HeapBuilder::new()),
        };
        match self {
            Self::Rust => rust(pick),
            Self::Text => format!("{builder}\n"),
            Self::Toml => toml::to_string(&builder).unwrap_or_else(|error| format!("# {error}\n")),
        }
    }
}

/// Returns the note on who has the pool.
fn note(owner: Owner) -> &'static str {
    match owner {
        Owner::Thread => {
            "Builds the pool. Each thread that acquires has one; its buffers may be dropped on any thread."
        }
        Owner::All => "Builds the pool. All threads share it: each has a clone.",
    }
}

fn rust(pick: &Candidate) -> String {
    let name = pick.strategy();
    let head =
        format!("/// The strategy, as `bufadvise check` reads it.\npub const STRATEGY: &str = \"{name}\";\n");
    let Candidate::Pool(builder) = pick else {
        return head
            + "\n/// Makes a buffer: no pool would help.\npub fn buffer(bytes: usize) -> Vec<u8> {\n    \
               Vec::with_capacity(bytes)\n}\n";
    };
    let settings = set(builder);
    let are_numbers = settings.iter().all(|(_, value)| digits(value).is_some());
    let known = pick.known().filter(|_| are_numbers);
    let Some((path, owner)) = known.and_then(|known| Some((known.pool_type?, known.owner))) else {
        return format!(
            "{head}/// The same with its settings.\npub const SETTINGS: &str = \"{builder}\";\n\n\
             /// Builds the pool.\n\
             pub fn pool() -> Result<bufworks::AnyPool, Box<dyn std::error::Error>> {{\n    \
             Ok(SETTINGS.parse::<bufworks::any::AnyBuilder>()?.build()?)\n}}\n"
        );
    };
    let (mut constants, mut calls) = (String::new(), String::new());
    for (setting, value) in &settings {
        let (constant, value) = (setting.to_uppercase(), digits(value).unwrap_or_default());
        constants += &format!("/// The setting `{setting}`.\npub const {constant}: usize = {value};\n");
        calls += &format!(".{setting}({constant})");
    }
    format!(
        "{head}{constants}\n/// {}\npub fn pool() -> Result<bufworks::{path}, bufworks::ConfigError> {{\n    \
         bufworks::{path}::builder(){calls}.build()\n}}\n",
        note(owner)
    )
}

/// Returns the settings that differ from the defaults, with their values.
fn set(builder: &AnyBuilder) -> Vec<(String, serde_json::Value)> {
    let object = |builder: &AnyBuilder| serde_json::to_value(builder).unwrap_or_default();
    let (own, usual) = (object(builder), AnyBuilder::named(builder.name()).map(|usual| object(&usual)));
    let usual = usual.unwrap_or_default();
    let own = own.as_object().into_iter().flatten();
    own.filter(|(name, value)| *name != "strategy" && usual.get(name) != Some(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Returns a number as one writes it in code.
fn digits(number: &serde_json::Value) -> Option<String> {
    let plain = number.as_u64()?.to_string();
    let mut text = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    Some(text)
}

/// Reads settings: a text, or a file with what [`Form::write`] wrote.
///
/// # Errors
///
/// When it is neither.
pub(crate) fn read(settings: &str) -> Result<Candidate> {
    let path = Path::new(settings);
    if !path.is_file() {
        return settings.parse().with_context(|| format!("{settings} is no file, and no settings"));
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {settings}"))?;
    read_text(&text).with_context(|| format!("{settings} has no settings"))
}

fn read_text(text: &str) -> Result<Candidate> {
    if text.contains("pub const STRATEGY") {
        return read_rust(text);
    }
    if text.lines().any(|line| line.trim_start().starts_with("strategy")) {
        return Ok(Candidate::Pool(toml::from_str(text).context("it is no table of settings")?));
    }
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    match lines[..] {
        [line] => Ok(line.parse()?),
        _ => bail!(
            "expected one line such as `slot:capacity=64KiB,slots=16`, a table of TOML, or Rust of --emit"
        ),
    }
}

/// Returns the constants of such a file.
fn read_rust(text: &str) -> Result<Candidate> {
    let constants = text.lines().filter_map(|line| {
        let (name, value) = line.trim().strip_prefix("pub const ")?.split_once(':')?;
        let value = value.split_once('=')?.1.trim().trim_end_matches(';').trim_matches('"');
        Some((name.trim().to_lowercase(), value.to_owned()))
    });
    let (mut strategy, mut settings) = (String::new(), Vec::new());
    for (name, value) in constants {
        match name.as_str() {
            "strategy" => strategy = value,
            "settings" => return Ok(value.parse()?),
            _ => {
                let number =
                    value.replace('_', "").parse().with_context(|| format!("{name} is no number"))?;
                settings.push((name, number));
            }
        }
    }
    if strategy == Candidate::Vec.strategy() {
        return Ok(Candidate::Vec);
    }
    let settings: Vec<(&str, usize)> =
        settings.iter().map(|(name, number): &(String, usize)| (name.as_str(), *number)).collect();
    Ok(pool(&strategy, &settings)?)
}

/// What is written, as a program takes it in: compiled here.
#[cfg(test)]
#[path = "emitted/mod.rs"]
#[allow(unreachable_pub, dead_code, reason = "the interface of a program's module")]
mod emitted;

#[cfg(test)]
mod tests {
    use bufcore::BufferPool;

    use super::*;

    #[test]
    fn emitted_rust_compiles_and_serves() {
        for (settings, file) in [
            ("slot:capacity=64KiB,slots=16", include_str!("emitted/slot.rs")),
            ("ring:capacity=1500000,buffers=9", include_str!("emitted/ring.rs")),
            ("bump:shard_size=64KiB,max_idle_bytes=3MiB", include_str!("emitted/bump.rs")),
            ("shard:thread_cache=4,shard_buffers=115", include_str!("emitted/shard.rs")),
            ("heap:alignment=4KiB", include_str!("emitted/heap.rs")),
            ("vec", include_str!("emitted/vec.rs")),
        ] {
            let candidate: Candidate = settings.parse().expect("settings");
            let written = Form::Rust.written(&candidate, candidate.is_control(), "app");
            assert_eq!(written, file, "write it again: {settings}\n{written}");
        }
        fn serves(mut pool: impl BufferPool) {
            assert!(pool.acquire(1000).expect("there is room").capacity() >= 1000);
        }
        serves(emitted::slot::pool().expect("settings are right"));
        serves(emitted::ring::pool().expect("settings are right"));
        serves(emitted::bump::pool().expect("settings are right"));
        serves(emitted::shard::pool().expect("settings are right"));
        serves(emitted::heap::pool().expect("settings are right"));
        assert_eq!(emitted::slot::SLOTS, 16);
        assert!(emitted::vec::buffer(1000).capacity() >= 1000);
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "slot:capacity=64KiB,slots=16",
            "ring:capacity=1500000,buffers=9",
            "bump:shard_size=64KiB,max_idle_bytes=3MiB",
            "shard:thread_cache=4,shard_buffers=115",
            "shard:thread_cache=4,smallest_pooled=4097",
            "bounded-slot:capacity=64KiB",
            "slot:capacity=64KiB,stagger=false",
            "heap",
            "slot",
        ] {
            let candidate: Candidate = text.parse().expect("settings");
            for form in [Form::Rust, Form::Text, Form::Toml] {
                let written = form.code(&candidate);
                assert_eq!(read_text(&written).expect(&written), candidate, "{written}");
            }
        }
        assert_eq!(read_text(&Form::Rust.code(&Candidate::Vec)).expect("no pool"), Candidate::Vec);
    }

    #[test]
    fn a_file_that_somebody_changed_is_read_as_it_is() {
        let candidate = read_text(
            "// Ours.\npub const STRATEGY: &str = \"slot\";\n    pub const SLOTS: usize = 1_000;\nfn other() {}\n",
        );
        assert_eq!(candidate.expect("settings").to_string(), "slot:slots=1000");
        assert_eq!(read_text("# ours\nring:buffers=4\n").expect("settings").to_string(), "ring:buffers=4");
        for wrong in ["", "slot\nring\n", "strategy = \"slab\"\n", "pub const STRATEGY: &str = \"slab\";"] {
            assert!(read_text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_readable() {
        let text = |number: u64| digits(&number.into()).expect("a number");
        assert_eq!(text(1_048_576), "1_048_576");
        assert_eq!(text(999), "999");
    }
}

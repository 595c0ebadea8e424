//! Monitors: what they export, pools that lie, panic, come back in and end, and what others do with
//! the numbers.

mod hostile;
mod text;
mod watches;

#[cfg(feature = "tracing")]
mod events;
#[cfg(feature = "metrics")]
mod facade;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use bufworks::{PoolStats, Trim};

/// A series, as a strict reader of the text format understands it.
#[derive(Debug)]
struct Series {
    kind: String,
    /// The values, by the pool's name.
    values: BTreeMap<String, u64>,
}

/// Reads the text format as narrowly as it is written: `HELP`, `TYPE` and the lines of one series
/// after another, one label, whole numbers. Everything else is a panic.
fn parse(text: &str) -> BTreeMap<String, Series> {
    let mut all = BTreeMap::new();
    assert!(text.is_empty() || text.ends_with('\n'), "the last line ends: {text:?}");
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let (name, help) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')).expect(line);
        assert!(help.ends_with('.') && !help.contains('\\'), "{line}");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
        let of_type = lines.next().expect("a type follows");
        let (typed, kind) =
            of_type.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')).expect(of_type);
        assert_eq!(typed, name);
        assert_eq!(name.ends_with("_total"), kind == "counter", "{of_type}");
        assert!(kind == "counter" || kind == "gauge", "{of_type}");
        let unit = name.trim_end_matches("_total").rsplit('_').next().expect("there is a last word");
        assert!(["bytes", "buffers", "requests", "seconds"].contains(&unit), "{name}");
        let mut values = BTreeMap::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let rest = line.strip_prefix(name).and_then(|rest| rest.strip_prefix("{pool=\"")).expect(line);
            let (pool, rest) = unescaped(rest);
            let value = rest.strip_prefix("} ").expect(line);
            assert!(value.bytes().all(|byte| byte.is_ascii_digit()), "{line}");
            let value = value.parse().expect("it is a number");
            assert!(values.insert(pool, value).is_none(), "{line}: twice");
        }
        assert!(!values.is_empty(), "{name}");
        assert!(all.insert(name.to_owned(), Series { kind: kind.to_owned(), values }).is_none(), "{name}");
    }
    all
}

/// The value of a label up to its quotation mark, and what is behind that.
fn unescaped(text: &str) -> (String, &str) {
    let (mut value, mut chars) = (String::new(), text.chars());
    loop {
        match chars.next().expect("the value ends") {
            '"' => return (value, chars.as_str()),
            '\\' => value.push(match chars.next() {
                Some('n') => '\n',
                Some(same @ ('\\' | '"')) => same,
                other => panic!("{other:?} is not escaped"),
            }),
            other => value.push(other),
        }
    }
}

/// A pool that says what it was told to say, after it did something.
struct Says {
    stats: Mutex<PoolStats>,
    first: Box<dyn Fn() + Send + Sync>,
}

impl Says {
    fn new(stats: PoolStats) -> Self {
        Self::after(stats, || ())
    }

    fn after(stats: PoolStats, first: impl Fn() + Send + Sync + 'static) -> Self {
        Self { stats: Mutex::new(stats), first: Box::new(first) }
    }

    fn set(&self, stats: PoolStats) {
        *self.stats.lock().unwrap() = stats;
    }
}

impl Trim for &Says {
    fn trim(&mut self) {
        self.set(PoolStats::default());
    }

    fn stats(&self) -> Option<PoolStats> {
        (self.first)();
        Some(*self.stats.lock().unwrap())
    }

    fn stalled(&self) -> Option<Duration> {
        Some(Duration::from_millis(12_999))
    }
}

/// Numbers, each of which is another.
fn numbers(n: usize) -> PoolStats {
    let mut stats = PoolStats::default();
    let count = n as u64;
    (stats.acquired, stats.fresh, stats.fallbacks, stats.exhausted) =
        (count + 1, count + 2, count + 3, count + 4);
    (stats.in_use, stats.in_use_bytes, stats.high_water, stats.high_water_bytes) =
        (n + 5, n + 6, n + 7, n + 8);
    (stats.reserved_bytes, stats.idle_bytes, stats.pinned_bytes) = (n + 9, n + 10, n + 11);
    stats
}

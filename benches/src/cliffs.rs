//! The search for cliffs: traffic in which a strategy takes many times as long as the best of the others.
//!
//! Shapes are drawn, and measured with all strategies, without settings. The worst of each strategy is
//! then changed a little, and what is worse takes its place.

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::Result;
use buftrials::table::Table;
use indicatif::{ProgressBar, ProgressStyle};

use crate::harness::measure::Scale;
use crate::harness::record::Record;
use crate::harness::shape::Shape;
use crate::harness::{Case, parent};
use crate::select;

/// Who is compared, and the vectors that a program has today.
const STRATEGIES: [&str; 4] = ["slot-default", "ring-default", "bump-default", "shard-default"];
const TODAY: &str = "vec";
/// How many shapes are kept of each strategy.
const KEPT: usize = 5;

/// Options of `cliffs`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How long it searches.
    #[arg(long, default_value_t = 120, value_name = "S")]
    seconds: u64,
    /// What the shapes are drawn with.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

/// A shape and the times of an operation in it, in the order of [`STRATEGIES`], and of vectors.
#[derive(Debug, Clone)]
struct Found {
    shape: Shape,
    nanos: [f64; STRATEGIES.len()],
    today: f64,
}

impl Found {
    /// Measures a shape; nothing if a strategy does not serve it.
    fn measure(shape: Shape) -> Result<Option<Self>> {
        let names: Vec<String> = STRATEGIES.iter().chain(&[TODAY]).map(|name| (*name).to_owned()).collect();
        let records = parent::row(&Case::Shape { shape }, select::named(&names), Scale::Quick)?;
        let of = |name: &str| {
            let record = records.iter().find(|record| record.engine == name);
            record.and_then(Record::timing).map(|timing| timing.median)
        };
        let found = || {
            let mut nanos = [0.0; STRATEGIES.len()];
            for (nanos, name) in nanos.iter_mut().zip(STRATEGIES) {
                *nanos = of(name)?;
            }
            Some(Self { shape, nanos, today: of(TODAY)? })
        };
        Ok(found())
    }

    /// How many times as long as the best one a strategy takes.
    fn ratio(&self, strategy: usize) -> f64 {
        self.nanos[strategy] / self.nanos.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

impl Options {
    /// Searches, and prints a table.
    ///
    /// # Errors
    ///
    /// When no child process can be started.
    pub fn run(&self) -> Result<()> {
        let (started, limit) = (Instant::now(), Duration::from_secs(self.seconds));
        let mut random = fastrand::Rng::with_seed(self.seed);
        let bar = ProgressBar::new(self.seconds);
        bar.set_style(ProgressStyle::with_template("{bar:24} {pos} of {len} s  {msg}")?);
        let mut worst: [Vec<Found>; STRATEGIES.len()] = Default::default();
        for turn in 0.. {
            bar.set_position(started.elapsed().as_secs());
            if started.elapsed() >= limit {
                break;
            }
            let kept = &worst[turn % STRATEGIES.len()];
            let shape = match kept.is_empty() || random.u32(..3) == 0 {
                true => Shape::any(&mut random),
                false => kept[random.usize(..kept.len())].shape.near(&mut random),
            };
            bar.set_message(format!("{turn} shapes"));
            let Some(found) = Found::measure(shape)? else { continue };
            for (strategy, worst) in worst.iter_mut().enumerate() {
                if worst.iter().all(|other| other.shape != shape) {
                    worst.push(found.clone());
                    worst.sort_by(|one, other| other.ratio(strategy).total_cmp(&one.ratio(strategy)));
                    worst.truncate(KEPT);
                }
            }
        }
        bar.finish_and_clear();
        // Once more, each once: what was slow by chance is not found twice.
        let mut again: Vec<Found> = Vec::new();
        for found in worst.iter().flatten() {
            if again.iter().all(|other| other.shape != found.shape) {
                again.extend(Found::measure(found.shape)?);
            }
        }
        for (strategy, worst) in worst.iter_mut().enumerate() {
            worst.retain_mut(|found| {
                let new = again.iter().find(|other| other.shape == found.shape);
                new.is_some_and(|new| {
                    found.clone_from(new);
                    true
                })
            });
            worst.sort_by(|one, other| other.ratio(strategy).total_cmp(&one.ratio(strategy)));
        }
        print!("{}", text(&worst));
        Ok(())
    }
}

fn text(worst: &[Vec<Found>]) -> String {
    let mut text = String::from("ns per buffer, without settings\n");
    for (strategy, (name, worst)) in STRATEGIES.iter().zip(worst).enumerate() {
        let mut table = Table::new(&[&["traffic", "times the best"], &STRATEGIES[..], &[TODAY]].concat());
        for found in worst {
            let nanos = found.nanos.iter().chain([&found.today]).map(|nanos| format!("{nanos:.1}"));
            let ratio = format!("{:.1}", found.ratio(strategy));
            table.rows.push([found.shape.parameters(), ratio].into_iter().chain(nanos).collect());
        }
        // Writing to a string does not fail.
        let _ = write!(text, "\n{name}\n\n{}", table.markdown());
    }
    text
}

//! The part that the programs of measurements share.
//!
//! | module | what is in it |
//! | --- | --- |
//! | [`table`] | tables, in Markdown and for a terminal |
//! | [`report`] | a report of tables and pictures: on a terminal, in Markdown, as a page |
//! | [`bars`] | a picture of bars |
//! | [`drawing`] | scales, colours, and a pen for SVG |
//! | [`results`] | results, as JSON |
//! | [`mark`] | what has to hold of the results |
//! | [`sizes`] | frequencies of sizes at random |
//! | [`words`] | files whose bytes are known |
//! | [`run`] | options of command lines; what parents and children say to each other |
//! | `allocator`, `system`, `watch` | programs over each allocator, what Linux says of a process, and a server that runs |
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "programs of the standard library's: nothing here is built without it"
)]

use std::process::ExitCode;

#[cfg(all(target_os = "linux", feature = "processes"))]
pub mod allocator;
pub mod bars;
pub mod drawing;
pub mod mark;
pub mod report;
pub mod results;
pub mod run;
pub mod sizes;
#[cfg(all(target_os = "linux", feature = "processes"))]
pub mod system;
pub mod table;
#[cfg(all(target_os = "linux", feature = "processes"))]
pub mod watch;
pub mod words;

/// Turns what a program did into its exit code, and prints an error.
///
/// A `main` that returns the error prints it as a debugger would: with `RUST_BACKTRACE` set, a
/// backtrace buries what failed.
#[must_use]
pub fn finish(done: anyhow::Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the middle one; of an even number the lower one of the two.
#[must_use]
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0].into_iter()), Some(1.0));
        assert_eq!(median([].into_iter()), None);
    }
}

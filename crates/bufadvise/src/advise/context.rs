//! `advise`: its options, and what it prints.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::analysis::{Analysis, bytes};
use super::{codegen, measuring, memory_chart, page, render_sites, render_text, scatter};
use crate::answer::Answer;
use crate::{call_sites, print};

/// Says which strategy fits a trace, with which settings, or that no pool would help.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The recorded trace: a file that `buftrace`'s recorder wrote
    file: PathBuf,
    #[command(flatten)]
    context: Context,
}

/// How the answer is found, and printed.
#[derive(Debug, clap::Args)]
pub(crate) struct Context {
    /// Write the advice to this file as a page too, with charts
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Print the advice as JSON
    #[arg(long)]
    json: bool,
    /// Print the choice alone, as a program takes it in
    #[arg(long, value_name = "FORM", conflicts_with = "json")]
    emit: Option<codegen::Form>,
    /// The seconds that the command may take, about; each call site takes a fifth of them more
    #[arg(long, default_value_t = 75, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Say it of this number of call sites of a heap recording too, those that request most
    #[arg(long, default_value_t = 3, value_name = "N")]
    sites: usize,
    /// Take call stacks as one call site whose innermost N frames look alike
    #[arg(long, value_name = "N", default_value_t = call_sites::FRAMES)]
    frames: usize,
    /// Take nothing that needs more memory, such as 16M
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory_limit: Option<u64>,
    /// Replay a few times only, to check that the command runs
    #[arg(long)]
    test: bool,
}

impl Options {
    /// Advises, as [`Context::run`] does.
    pub(crate) fn run(&self) -> Result<Answer> {
        self.context.run(&self.file)
    }
}

impl Context {
    /// Measures the candidates, and prints the advice for a recorded file.
    ///
    /// # Errors
    ///
    /// When the trace cannot be read, a candidate fails, or the advice cannot be written.
    pub(crate) fn run(&self, file: &Path) -> Result<Answer> {
        let analysis = Analysis {
            file,
            memory_limit: self.memory_limit,
            seconds: self.seconds,
            is_test: self.test,
            given: None,
            // What is emitted is the choice for the whole.
            sites: if self.emit.is_some() { 0 } else { self.sites },
            frames: self.frames.max(1),
        };
        let Some(advice) = measuring::advise(&analysis)? else { return Ok(Answer::No) };
        if let Some(path) = &self.page {
            let scatter = scatter::draw(&advice).context("there is nothing to draw")?;
            let memory = memory_chart::draw(&advice.name, &advice.memory);
            fs::write(path, page::page(&advice, &[&scatter, &memory]))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let text = if self.json {
            serde_json::to_string_pretty(&advice)?
        } else if let Some(form) = self.emit {
            form.write(&advice)
        } else {
            let sites = render_sites::text(&advice.call_sites);
            format!("{}{sites}\nThis took {:.0} s.", render_text::text(&advice), advice.seconds)
        };
        print::line(text.trim_end_matches('\n'))?;
        Ok(Answer::Yes)
    }
}

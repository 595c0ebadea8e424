//! Which rows and columns a command line means.

use std::io::{self, Write};

use anyhow::{Context, Result, bail};

use crate::adapters;
use crate::harness::contestant::BASELINE;
use crate::harness::measure::{Effort, Scale};
use crate::harness::{Case, Contestant, Kind};
use crate::workloads::{self, WORKLOADS};

/// [`Scale`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scales {
    /// [`Scale::Test`]
    Test,
    /// [`Scale::Quick`]
    Quick,
    /// [`Scale::Full`]
    Full,
}

/// What a child process is told.
#[derive(Debug, clap::Args)]
pub struct Child {
    /// The row.
    #[arg(long)]
    pub case: String,
    /// The columns.
    #[arg(long = "contestant", required = true)]
    pub contestants: Vec<String>,
    /// How much.
    #[arg(long)]
    pub scale: Scales,
}

impl Child {
    /// The row and the columns that are meant; columns that this build does not have are left out.
    ///
    /// # Errors
    ///
    /// When there is no such row.
    pub fn find(&self) -> Result<(Case, Vec<Contestant>)> {
        let case = workloads::cases(self.scale()).into_iter().find(|case| case.id() == self.case);
        let contestants =
            adapters::all().into_iter().filter(|one| self.contestants.iter().any(|name| name == one.name));
        Ok((case.with_context(|| format!("no row {}", self.case))?, contestants.collect()))
    }

    /// How hard to measure.
    #[must_use]
    pub fn effort(&self) -> Effort {
        Effort::of(self.scale())
    }

    fn scale(&self) -> Scale {
        match self.scale {
            Scales::Test => Scale::Test,
            Scales::Quick => Scale::Quick,
            Scales::Full => Scale::Full,
        }
    }
}

/// The rows of these workloads, or with these ids; all when none is named.
///
/// # Errors
///
/// When something is named that there is not.
pub fn cases(scale: Scale, wanted: &[String]) -> Result<Vec<Case>> {
    let cases = workloads::cases(scale);
    for name in wanted {
        if !WORKLOADS.contains(&name.as_str()) && !cases.iter().any(|case| case.id() == *name) {
            bail!(
                "no workload or row is called `{name}`: expected a row of `--list`, or one of {}",
                WORKLOADS.join(", ")
            );
        }
    }
    let is_wanted = |case: &Case| {
        wanted.is_empty() || wanted.iter().any(|name| case.workload() == name || case.id() == *name)
    };
    Ok(cases.into_iter().filter(is_wanted).collect())
}

/// The contestants with these names, each with its other settings, and the baseline; all when none is
/// named.
///
/// # Errors
///
/// When one is named that this build does not have.
pub fn contestants(wanted: &[String]) -> Result<Vec<Contestant>> {
    let all = adapters::all();
    for name in wanted {
        if !all.iter().any(|contestant| contestant.name == name) {
            let names: Vec<&str> = all.iter().map(|contestant| contestant.name).collect();
            bail!(
                "no contestant of this build is called `{name}` (peers need `--peers`): expected one of {}",
                names.join(", ")
            );
        }
    }
    let is_meant = |one: &Contestant| {
        let named = |name: &String| name == one.name || Some(name.as_str()) == one.setting_of;
        one.name == BASELINE || wanted.is_empty() || wanted.iter().any(named)
    };
    Ok(all.into_iter().filter(is_meant).collect())
}

/// Prints rows and columns. A reader that has seen enough, such as `head`, is no error.
///
/// # Errors
///
/// The output's.
pub fn list(out: &mut impl Write, cases: &[Case], contestants: &[Contestant]) -> io::Result<()> {
    match write_list(out, cases, contestants) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn write_list(out: &mut impl Write, cases: &[Case], contestants: &[Contestant]) -> io::Result<()> {
    writeln!(out, "contestants")?;
    for contestant in contestants {
        let kind = match contestant.kind {
            Kind::Strategy => "strategy",
            Kind::Setting => "setting",
            Kind::Control => "control",
            Kind::Peer => "peer",
        };
        writeln!(out, "  {:<16} {kind:<9} {}", contestant.name, contestant.idiom)?;
    }
    writeln!(out, "rows")?;
    for case in cases {
        writeln!(out, "  {:<22} {}", case.id(), case)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that has gone, or a disk that is full.
    struct Refusing(io::ErrorKind);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_may_have_seen_enough() {
        assert!(list(&mut Refusing(io::ErrorKind::BrokenPipe), &[], &[]).is_ok());
        assert!(list(&mut Refusing(io::ErrorKind::StorageFull), &[], &[]).is_err());
    }

    #[test]
    fn rows_and_columns_are_found_or_refused() {
        assert_eq!(cases(Scale::Quick, &["reuse/64B".into()]).unwrap().len(), 1);
        assert_eq!(cases(Scale::Quick, &["reuse".into()]).unwrap().len(), 9);
        assert!(cases(Scale::Quick, &["nonsense".into()]).is_err());
        let names = |wanted: &[String]| -> Vec<_> {
            contestants(wanted).unwrap().iter().map(|contestant| contestant.name).collect()
        };
        assert_eq!(names(&["heap".into()]), ["heap", "vec"]);
        assert_eq!(names(&["any-slot".into()]), ["vec", "any-slot"]);
        assert_eq!(names(&["slot".into()]), ["slot", "slot-default", "vec", "any-slot"]);
        assert!(names(&[]).len() >= 4);
        assert!(contestants(&["nonsense".into()]).is_err());
    }
}

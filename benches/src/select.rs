//! Which rows and columns a command line means.

use std::io::{self, Write};
use std::path::Path;

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

/// The contestants with these names, and the baseline; all when none is named. Those without
/// settings are left out unless `defaults` says otherwise, or they are named.
///
/// # Errors
///
/// When one is named that this build does not have.
pub fn contestants(wanted: &[String], defaults: bool) -> Result<Vec<Contestant>> {
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
    let compared: Vec<&str> = all
        .iter()
        .filter(|one| one.kind == Kind::Default && wanted.iter().any(|name| name == one.name))
        .filter_map(|one| one.setting_of)
        .collect();
    let is_wanted = |one: &Contestant| {
        let is_named = wanted.iter().any(|name| name == one.name);
        let is_left_out = one.kind == Kind::Default && !defaults && !is_named;
        let is_meant = wanted.is_empty() || is_meant(one, wanted) || compared.contains(&one.name);
        is_meant && !is_left_out
    };
    Ok(all.into_iter().filter(is_wanted).collect())
}

/// Whether the names mean this contestant. The baseline is always meant. A contestant's name means
/// its settings too, and itself without settings.
fn is_meant(contestant: &Contestant, wanted: &[String]) -> bool {
    let named = |name: &String| name == contestant.name || Some(name.as_str()) == contestant.setting_of;
    contestant.name == BASELINE || wanted.iter().any(named)
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
            Kind::Default => "default",
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

/// Says what a run would do.
pub fn announce(cases: &[Case], contestants: &[Contestant], effort: &Effort, out: &Path) {
    println!(
        "would run {} rows × {} contestants, in {} processes of up to {} rounds of {:?} each, and write {}",
        cases.len(),
        contestants.len(),
        effort.layouts,
        effort.rounds,
        effort.run,
        out.display()
    );
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
            contestants(wanted, true).unwrap().iter().map(|contestant| contestant.name).collect()
        };
        assert_eq!(names(&["heap".into()]), ["heap", "vec"]);
        assert_eq!(names(&["any-slot".into()]), ["any-slot", "vec"]);
        assert!(names(&[]).len() >= 4);
        assert!(contestants(&["nonsense".into()], true).is_err());
    }

    #[test]
    fn defaults_are_beside_what_they_are_compared_with() {
        let names = |wanted: &[&str], defaults| -> Vec<&str> {
            let wanted: Vec<String> = wanted.iter().map(|name| String::from(*name)).collect();
            contestants(&wanted, defaults).unwrap().iter().map(|contestant| contestant.name).collect()
        };
        assert_eq!(names(&["slot-default"], true), ["slot", "slot-default", "vec"]);
        assert_eq!(names(&["slot"], true), ["slot", "slot-default", "any-slot", "vec"]);
        assert_eq!(names(&["slot"], false), ["slot", "any-slot", "vec"]);
        assert_eq!(names(&["slot-default"], false), ["slot", "slot-default", "vec"], "it is named");
        assert!(names(&[], true).contains(&"ring-default"));
        assert!(!names(&[], false).iter().any(|name| name.ends_with("-default")));
    }

    #[test]
    fn a_contestant_brings_its_settings() {
        let setting = Contestant::setting("ring-half", "ring", &["chaos"], "half the bytes");
        assert!(is_meant(&setting, &["ring".into()]));
        assert!(is_meant(&setting, &["ring-half".into()]));
        assert!(!is_meant(&setting, &["slot".into()]));
    }
}

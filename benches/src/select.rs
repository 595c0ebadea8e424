//! Which rows and columns a command line means.

use std::fmt::Write;

use anyhow::{Result, bail};
use buftrials::run::name_of;

use crate::adapters;
use crate::harness::engine::BASELINE;
use crate::harness::measure::Scale;
use crate::harness::{Case, Engine};
use crate::workloads::{self, WORKLOADS};

/// The rows of these workloads, or with these ids; all when none is named.
///
/// # Errors
///
/// When something is named that there is not.
pub fn cases(scale: Scale, wanted: &[String]) -> Result<Vec<Case>> {
    let cases = workloads::cases(scale);
    for name in wanted {
        if !WORKLOADS.iter().any(|(workload, _)| workload == name)
            && !cases.iter().any(|case| case.id() == *name)
        {
            bail!(
                "no workload or row is called `{name}`: expected a row of `--list`, or one of {}",
                WORKLOADS.map(|(name, _)| name).join(", ")
            );
        }
    }
    let is_wanted = |case: &Case| {
        wanted.is_empty() || wanted.iter().any(|name| case.workload() == name || case.id() == *name)
    };
    Ok(cases.into_iter().filter(is_wanted).collect())
}

/// The engines with these names, each with its other settings, and the baseline; all when none is
/// named.
///
/// # Errors
///
/// When one is named that this build does not have.
pub fn engines(wanted: &[String]) -> Result<Vec<Engine>> {
    let all = adapters::all();
    for name in wanted {
        if !all.iter().any(|engine| engine.name == name) {
            let names: Vec<&str> = all.iter().map(|engine| engine.name).collect();
            bail!(
                "no engine of this build is called `{name}` (peers need `--peers`): expected one of {}",
                names.join(", ")
            );
        }
    }
    let is_meant = |one: &Engine| {
        let named = |name: &String| name == one.name || Some(name.as_str()) == one.setting_of;
        one.name == BASELINE || wanted.is_empty() || wanted.iter().any(named)
    };
    Ok(all.into_iter().filter(is_meant).collect())
}

/// Those of this build that have these names.
#[must_use]
pub fn named(names: &[String]) -> Vec<Engine> {
    adapters::all().into_iter().filter(|one| names.iter().any(|name| name == one.name)).collect()
}

/// Rows and columns, a line each.
#[must_use]
pub fn list(cases: &[Case], engines: &[Engine]) -> String {
    let mut list = String::from("engines\n");
    // Writing to a string does not fail.
    for Engine { name, kind, idiom, .. } in engines {
        let _ = writeln!(list, "  {name:<16} {:<9} {idiom}", name_of(kind));
    }
    list += "rows\n";
    for case in cases {
        let _ = writeln!(list, "  {:<22} {case}", case.id());
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_found_or_refused() {
        assert_eq!(cases(Scale::Quick, &["reuse/64B".into()]).unwrap().len(), 1);
        assert_eq!(cases(Scale::Quick, &["reuse".into()]).unwrap().len(), 9);
        assert!(cases(Scale::Quick, &["nonsense".into()]).is_err());
        let names = |wanted: &[String]| -> Vec<_> {
            engines(wanted).unwrap().iter().map(|engine| engine.name).collect()
        };
        assert_eq!(names(&["heap".into()]), ["heap", "vec"]);
        assert_eq!(names(&["any-slot".into()]), ["vec", "any-slot"]);
        assert_eq!(names(&["slot".into()]), ["slot", "slot-default", "vec", "any-slot", "slot-per-thread"]);
        assert!(names(&[]).len() >= 4);
        assert!(engines(&["nonsense".into()]).is_err());
        assert!(list(&[], &named(&["heap".into()])).contains("heap             control"));
    }
}

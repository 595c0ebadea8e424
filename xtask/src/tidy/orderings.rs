//! The rules for the lines about weaker orders: each names an order that there is, and a reason.

use std::fs;

use anyhow::{Context, Result};

use super::Finding;
use crate::orderings::{FILE, Orderings};
use crate::packages::Package;

/// Checks the lines against the sources of `packages`; also says how many orders there are.
pub(super) fn check(packages: &[Package]) -> Result<(Vec<Finding>, usize)> {
    let text = fs::read_to_string(FILE).with_context(|| format!("cannot read {FILE}"))?;
    let orderings = Orderings::of(packages)?;
    let wrong = orderings.check(&text);
    Ok((wrong.into_iter().map(|(line, message)| Finding::at(line, message)).collect(), orderings.count()))
}

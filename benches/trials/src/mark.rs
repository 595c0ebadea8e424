//! Something that has to hold of the results.

use anyhow::{Result, ensure};

use crate::table::Table;

/// Something that has to hold, and whether it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// What has to hold.
    pub what: String,
    /// What was found.
    pub found: String,
    /// Whether it holds.
    pub holds: bool,
}

/// Makes a table of marks.
#[must_use]
pub fn table(marks: &[Mark]) -> Table {
    let mut table = Table::new(&["what has to hold", "found", "holds"]);
    table.rows.extend(marks.iter().map(|mark| {
        let holds = if mark.holds { "yes" } else { "**no**" };
        vec![mark.what.clone(), mark.found.clone(), holds.to_owned()]
    }));
    table
}

/// Fails where something does not hold.
///
/// # Errors
///
/// When something does not hold, if that is to be `checked`.
pub fn judge(marks: &[Mark], checked: bool) -> Result<()> {
    let failed: Vec<&str> = marks.iter().filter(|mark| !mark.holds).map(|mark| mark.what.as_str()).collect();
    ensure!(!checked || failed.is_empty(), "{} do not hold:\n  {}", failed.len(), failed.join("\n  "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_does_not_hold_fails_a_check() {
        let mark = |what: &str, holds| Mark { what: what.to_owned(), found: "1".to_owned(), holds };
        let marks = [mark("one", true), mark("two", false)];
        assert!(judge(&marks, false).is_ok() && judge(&marks[..1], true).is_ok());
        assert_eq!(judge(&marks, true).unwrap_err().to_string(), "1 do not hold:\n  two");
    }
}

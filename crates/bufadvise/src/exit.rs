//! A command's answer to the script that ran it.

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done, or yes.
    Yes,
    /// No.
    No,
}

//! What keeps a pool small while nobody asks it to.

use std::io;

use bufworks::{Keeper, Watch};

/// Keeps `pool` small, until the process ends.
///
/// # Errors
///
/// When no thread can be started.
pub(super) fn keep(pool: &impl Watch) -> io::Result<()> {
    // Its end would be that of the watch.
    std::mem::forget(Keeper::new().watch(pool).spawn()?);
    Ok(())
}

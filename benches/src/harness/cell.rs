//! One cell of the matrix: an engine at work on a case.

use std::time::Duration;

/// An engine that is set up for a case.
pub trait Cell {
    /// Whether the engine keeps the bytes of several live buffers apart. Called before anything
    /// is timed, on the very pools that are timed then.
    ///
    /// # Errors
    ///
    /// What was found instead of the right bytes.
    fn check(&mut self) -> Result<(), String>;

    /// Does the work `iterations` times and says how long that took, setup and threads' start
    /// apart.
    fn run(&mut self, iterations: u64) -> Duration;

    /// Operations in one iteration. An operation is one acquire and the release that belongs to it.
    fn operations(&self) -> u64;

    /// How many threads do as many operations in an iteration, each of them.
    fn threads(&self) -> u64 {
        1
    }

    /// Bytes that one iteration moves, where that is the point of the workload.
    fn bytes(&self) -> Option<u64> {
        None
    }

    /// The number of iterations that a run has to have, where it is not for the harness to choose.
    fn fixed_iterations(&self) -> Option<u64> {
        None
    }

    /// Times single operations, one clock reading before and one after each, into `nanos`; `false`
    /// if the workload has no single operations.
    fn sample(&mut self, nanos: &mut [u32]) -> bool {
        let _ = nanos;
        false
    }

    /// As [`Pool::fallbacks`](crate::harness::serve::Pool::fallbacks).
    fn fallbacks(&self) -> Option<u64> {
        None
    }
}

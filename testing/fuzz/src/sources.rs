//! A source of memory that lends, refuses and panics as the bytes of the program say.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bufcore::{Region, RegionError};
use bufkit::orphan;
use testkit::bytes::Bytes;
use testkit::hostile::{guarded, locked, panic_on_purpose};
use testkit::source::{Ask, Lender, Loan};

use crate::hostile::Others;

/// What a source does at one of its calls.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Lend(Loan),
    Panic,
    /// Uses pools of its own, then lends.
    Work(usize),
}

/// A source, and what it has still to do.
pub(crate) struct Memory {
    lender: Arc<Lender>,
    plan: Arc<Mutex<VecDeque<Turn>>>,
}

impl Memory {
    /// A source that does what the next bytes say when it is asked, and once when it takes memory back.
    pub(crate) fn new(bytes: &mut Bytes<'_>) -> Self {
        let plan: Arc<Mutex<VecDeque<Turn>>> = Arc::default();
        for _ in 0..bytes.below(4) {
            let turn = match bytes.below(6) {
                0 => Turn::Lend(Loan::OutOfMemory),
                1 => Turn::Lend(Loan::Refused),
                2 => Turn::Lend(Loan::Old),
                3 => Turn::Lend(Loan::Zeroed),
                4 => Turn::Panic,
                _ => Turn::Work(bytes.below(4)),
            };
            locked(&plan).push_back(turn);
        }
        let at_end = match bytes.below(4) {
            0 => Some(Turn::Panic),
            1 => Some(Turn::Work(bytes.below(4))),
            _ => None,
        };
        let (planned, others) = (Arc::clone(&plan), Mutex::new(Others::default()));
        let lender = Lender::new(move |ask| {
            let turn = match ask {
                Ask::Supply => locked(&planned).pop_front().unwrap_or(Turn::Lend(Loan::Old)),
                Ask::TakeBack => at_end.unwrap_or(Turn::Lend(Loan::Old)),
            };
            match turn {
                Turn::Lend(loan) => return loan,
                Turn::Panic => panic_on_purpose(),
                Turn::Work(which) => {
                    if let Ok(mut others) = others.try_lock() {
                        others.work(which);
                    }
                }
            }
            Loan::Old
        });
        Self { lender: Arc::new(lender), plan }
    }

    /// A region of its memory, at the first call that it lends at. What fails keeps nothing.
    pub(crate) fn region(&self, len: usize, alignment: usize) -> Region {
        loop {
            let before = self.lender.out();
            match guarded(|| Region::from_provider(Arc::clone(&self.lender), len, alignment)) {
                Some(Ok(region)) => return region,
                Some(Err(error)) => assert!(
                    matches!(error, RegionError::OutOfMemory { .. } | RegionError::Refused { .. }),
                    "{error}"
                ),
                None => {}
            }
            assert_eq!(self.lender.out(), before, "what was refused is out");
        }
    }

    /// From now on it lends.
    pub(crate) fn end(&self) {
        locked(&self.plan).clear();
    }

    /// Nothing that it lent is out, when all pools and buffers are gone.
    pub(crate) fn check(&self) {
        orphan::sweep();
        assert_eq!(self.lender.out(), 0, "memory of a source that never came back");
    }
}

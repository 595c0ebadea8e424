//! The columns: who takes part, and what each of them has to offer.
//!
//! An engine is one file in `adapters/` and one line in its registry. It implements
//! [`Pool`](super::serve::Pool), [`Frames`](super::serve::Frames) or both, and says which groups of
//! workloads it can serve with them (`workloads/offers.rs`); for the others it says why not.

use crate::harness::case::Case;
use crate::harness::cell::Cell;
use crate::harness::plan::{Settings, Unsupported};

/// The engine that all are compared with.
pub const BASELINE: &str = "vec";
/// The engine that does nothing.
pub const NOOP: &str = "noop";

/// The workloads that engines without settings are in: those in which settings matter.
const UNSET: &[&str] =
    &["reuse", "burst", "mixed", "queue", "tasks", "frame", "handoff", "threads", "replay", "shape"];

/// What kind of engine one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A strategy of this workspace.
    Strategy,
    /// A strategy or a peer with other settings than those that the plan asks for, or without any, where
    /// the settings are what is to be seen. It is in no verdict.
    Setting,
    /// What every strategy is compared with.
    Control,
    /// A published crate that does a similar job.
    Peer,
}

/// Builds the typed cell of a case.
pub(crate) type Maker = fn(&Case, Settings) -> Result<Box<dyn Cell>, Unsupported>;

/// How an engine serves one group of workloads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Offer {
    Cell(Maker),
    None(&'static str),
}

/// One column of the matrix.
#[derive(Debug, Clone, Copy)]
pub struct Engine {
    /// As in reports and on the command line.
    pub name: &'static str,
    /// Strategy, setting, control or peer.
    pub kind: Kind,
    /// The engine that it is a setting of, or that it is without settings.
    pub setting_of: Option<&'static str>,
    /// The workloads that it is in; all if there are none.
    only: &'static [&'static str],
    /// What its pools are made with.
    settings: Settings,
    /// The idiom in which it is used, for the report.
    pub idiom: &'static str,
    /// Whether its memory comes from Rust's global allocator, so that calls to it can be counted.
    pub counted: bool,
    /// How it serves each [`Group`] of workloads.
    offers: [Offer; 8],
}

impl Engine {
    /// An engine that offers nothing yet.
    #[must_use]
    pub const fn new(name: &'static str, kind: Kind, idiom: &'static str) -> Self {
        let nothing = Offer::None("the adapter offers nothing here");
        Self {
            name,
            kind,
            setting_of: None,
            only: &[],
            settings: Settings::Planned,
            idiom,
            counted: true,
            offers: [nothing; 8],
        }
    }

    /// The strategy `of` with other settings, for the workloads that are about them. It is a column
    /// of its own there, and is not in the rest of the matrix.
    #[must_use]
    pub const fn setting(
        name: &'static str,
        of: &'static str,
        only: &'static [&'static str],
        idiom: &'static str,
    ) -> Self {
        Self { only, setting_of: Some(of), ..Self::new(name, Kind::Setting, idiom) }
    }

    /// The engine as a program makes it that sets nothing. The same code serves both, so where the
    /// compiler put a loop makes no difference between them.
    #[must_use]
    pub const fn without_settings(self, name: &'static str, idiom: &'static str) -> Self {
        let (setting_of, settings) = (Some(self.name), Settings::Unset);
        Self { name, kind: Kind::Setting, setting_of, only: UNSET, settings, idiom, ..self }
    }

    /// The engine without settings but for huge pages, where files are read.
    #[must_use]
    pub const fn with_huge_pages(self, name: &'static str, idiom: &'static str) -> Self {
        let settings = Settings::HugePages;
        Self { only: &["file"], settings, ..self.without_settings(name, idiom) }
    }

    /// The engine, with what it has for a group of workloads.
    #[must_use]
    pub(crate) fn offers(mut self, group: Group, offer: Offer) -> Self {
        self.offers[group as usize] = offer;
        self
    }

    /// Whether it takes part in a row at all, be it with a reason why it does not serve it.
    #[must_use]
    pub fn takes_part(&self, case: &Case) -> bool {
        // Pools are asked for buffers of every kind, and whoever carries bytes only for what it carries.
        let asked = if Group::of(case) <= Group::Frames { Group::Whole } else { Group::of(case) };
        matches!(self.offers[asked as usize], Offer::Cell(_))
            && (self.only.is_empty() || self.only.contains(&case.workload()))
    }

    /// Why it cannot serve frames.
    #[must_use]
    pub fn no_frames(self, reason: &'static str) -> Self {
        self.offers(Group::Frames, Offer::None(reason))
    }

    /// Its memory does not come from Rust's global allocator.
    #[must_use]
    pub fn uncounted(mut self) -> Self {
        self.counted = false;
        self
    }

    /// Why the engine does not serve such cases at all; `None` if it does, though building one
    /// may still fail.
    #[must_use]
    pub fn refusal(&self, case: &Case) -> Option<Unsupported> {
        match self.offer(case) {
            Offer::Cell(_) => None,
            Offer::None(reason) => Some(reason.into()),
        }
    }

    /// Builds the cell of `case`, pools included.
    ///
    /// # Errors
    ///
    /// When the engine does not serve that case.
    pub fn cell(&self, case: &Case) -> Result<Box<dyn Cell>, Unsupported> {
        match self.offer(case) {
            Offer::Cell(make) => make(case, self.settings),
            Offer::None(reason) => Err(reason.into()),
        }
    }

    fn offer(&self, case: &Case) -> Offer {
        self.offers[Group::of(case) as usize]
    }
}

/// Workloads that ask the same of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// One thread acquires and releases whole buffers.
    Whole,
    /// A buffer is dropped on another thread.
    Sends,
    /// Several threads acquire.
    Threads,
    /// Buffers grow.
    Frames,
    /// Bytes go through a ring.
    Streams,
    /// Bytes are looked at in a ring.
    Parses,
    /// Bytes go from one thread to another.
    Pipes,
    /// Messages go from threads to threads.
    Messages,
}

impl Group {
    fn of(case: &Case) -> Self {
        match case {
            Case::Reuse { .. }
            | Case::Burst { .. }
            | Case::TwoPools { .. }
            | Case::Mixed { .. }
            | Case::Queue { .. }
            | Case::ShortLived { .. }
            | Case::Tasks { threads: 1, .. }
            | Case::File { .. }
            | Case::Replay { .. }
            | Case::Shape { .. } => Self::Whole,
            Case::Handoff { .. } => Self::Sends,
            Case::Threads { .. } | Case::Tasks { .. } => Self::Threads,
            Case::Frame { .. } | Case::Growing { .. } => Self::Frames,
            Case::Stream { .. } => Self::Streams,
            Case::Parse { .. } => Self::Parses,
            Case::Spsc { .. } => Self::Pipes,
            Case::Messages { .. } => Self::Messages,
        }
    }
}

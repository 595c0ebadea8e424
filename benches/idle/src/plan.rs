//! Which trials run, and in which order.

use anyhow::{Context, Result, ensure};
use bufadvise::measure::host;
use buftrials::run::Scale;

use crate::budget::Crowd;
use crate::engine::{Allocator, Engine};
use crate::idle::Course;
use crate::record::{BudgetRun, IdleRun, Results};

/// What runs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How much of it.
    pub scale: Scale,
    /// The number of turns of each engine.
    pub rounds: usize,
    /// These engines; without any, those that the scale has.
    pub engines: Vec<Engine>,
    /// Over these allocators.
    pub allocators: Vec<Allocator>,
}

impl Plan {
    /// Runs all of it, and says on standard error what it is at.
    ///
    /// # Errors
    ///
    /// When a program is missing, a server loses a connection or answers wrongly, or the system does
    /// not say what it uses.
    pub fn run(&self) -> Result<Results> {
        ensure!(self.rounds > 0, "nothing to do in 0 rounds");
        let host = host::look();
        let course = match self.scale {
            Scale::Full => Course::FULL,
            Scale::Quick => Course::QUICK,
            Scale::Test => Course::TEST,
        };
        Ok(Results { host, course, idle: self.idle(&course)?, budget: self.budget()? })
    }

    /// The runs of the first trial, in the order of one round.
    fn turns(&self) -> Vec<(Engine, Allocator)> {
        let takes_part = |engine: Engine, allocator| {
            if !self.engines.is_empty() {
                return self.engines.contains(&engine);
            }
            self.scale != Scale::Quick
                || match engine {
                    Engine::Codec | Engine::BumpKeeper | Engine::ShardKeeper => true,
                    Engine::BytesMut | Engine::Bump | Engine::Shard => allocator == Allocator::Glibc,
                    _ => false,
                }
        };
        let of = |allocator: Allocator| {
            Engine::all().filter(move |&one| takes_part(one, allocator)).map(move |one| (one, allocator))
        };
        self.allocators.iter().flat_map(|&allocator| of(allocator).collect::<Vec<_>>()).collect()
    }

    /// Runs the first trial.
    fn idle(&self, course: &Course) -> Result<Vec<IdleRun>> {
        let turns = self.turns();
        let total = turns.len() * self.rounds;
        let mut runs = Vec::new();
        for round in 0..self.rounds {
            for at in 0..turns.len() {
                // So that nobody is first each time.
                let (engine, allocator) = turns[(at + round) % turns.len()];
                let name = format!("{}, {}", engine.title(), allocator.name());
                let run = course.run(engine, allocator);
                let run = run.with_context(|| format!("with {name}"))?;
                eprintln!("idle: {} of {total}: {name}: {} MiB", runs.len() + 1, run.idle >> 20);
                runs.push(run);
            }
        }
        Ok(runs)
    }

    fn budget(&self) -> Result<Vec<BudgetRun>> {
        let crowds: &[Crowd] =
            if self.scale == Scale::Test { &[Crowd::TEST] } else { &[Crowd::FULL, Crowd::SLOW] };
        let mut runs = Vec::new();
        let allocator = self.allocators.first().copied().unwrap_or(Allocator::Glibc);
        for crowd in crowds {
            for engine in [Engine::Codec, Engine::Shard] {
                let run = crowd.run(engine, allocator);
                let run = run.with_context(|| format!("{} under a budget", engine.title()))?;
                eprintln!("idle: under a budget: {}: {} answers", engine.title(), run.answered);
                runs.push(run);
            }
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(scale: Scale, engines: Vec<Engine>) -> Plan {
        Plan { scale, rounds: 1, engines, allocators: Allocator::plain().collect() }
    }

    #[test]
    fn the_quick_form_has_what_the_marks_need() {
        let turns = plan(Scale::Quick, Vec::new()).turns();
        assert_eq!(turns.len(), 12);
        for allocator in Allocator::plain() {
            for needed in [Engine::Codec, Engine::BumpKeeper, Engine::ShardKeeper] {
                assert!(turns.contains(&(needed, allocator)), "{needed:?} over {allocator:?}");
            }
        }
        assert_eq!(plan(Scale::Full, Vec::new()).turns().len(), 27);
        let chosen = plan(Scale::Quick, vec![Engine::Mirror]).turns();
        assert!(chosen.into_iter().eq(Allocator::plain().map(|allocator| (Engine::Mirror, allocator))));
    }
}

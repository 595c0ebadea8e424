//! A schedule on its way to a child process: flat numbers through a pipe.
//!
//! A child that made the schedule itself would replay it over a heap with megabytes of free and
//! resident memory. It reads numbers into vectors of the right size, and frees none of them.

use std::io::{self, BufReader, Read};

use anyhow::{Result, bail, ensure};

use super::schedule::{Part, Schedule, Step};

/// The first number of a schedule.
const MAGIC: u32 = 0x6275_6661;

/// Returns the schedule for children.
pub(crate) fn encode(schedule: &Schedule) -> Vec<u8> {
    let Schedule { parts, places, buffers, pools, touched } = schedule;
    let head = [MAGIC as usize, *places, *buffers, *pools, *touched, parts.len()];
    let mut numbers = head.map(|number| u32::try_from(number).unwrap_or(u32::MAX)).to_vec();
    for part in parts {
        numbers.extend([part.steps.len() as u32, part.sources.len() as u32, part.releases]);
        numbers.extend(&part.sources);
        numbers.extend(part.steps.iter().flat_map(|step| match *step {
            Step::Await { worker, releases } => [0, worker, releases, 0, 0],
            Step::Acquire { source, bytes, place, to } => [1, source, bytes, place, to],
            Step::Release { from, place, bytes } => [2, from, place, bytes, 0],
            Step::Look => [3, 0, 0, 0, 0],
        }));
    }
    numbers.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Reads a schedule that [`encode`] wrote.
///
/// # Errors
///
/// When it is something else, or ends too early.
pub(crate) fn read(from: impl Read) -> Result<Schedule> {
    let mut from = BufReader::new(from);
    let mut next = || -> io::Result<u32> {
        let mut bytes = [0; 4];
        from.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    };
    ensure!(next()? == MAGIC, "the standard input has no schedule");
    let head = [next()?, next()?, next()?, next()?];
    let [places, buffers, pools, touched] = head.map(|number| number as usize);
    let mut parts = Vec::new();
    for _ in 0..next()? {
        let (steps, sources, releases) = (next()?, next()?, next()?);
        let mut part = Part { releases, ..Part::default() };
        part.steps.reserve_exact(steps as usize);
        part.sources.reserve_exact(sources as usize);
        for _ in 0..sources {
            part.sources.push(next()?);
        }
        for _ in 0..steps {
            let (kind, [a, b, c, d]) = (next()?, [next()?, next()?, next()?, next()?]);
            part.steps.push(match kind {
                0 => Step::Await { worker: a, releases: b },
                1 => Step::Acquire { source: a, bytes: b, place: c, to: d },
                2 => Step::Release { from: a, place: b, bytes: c },
                3 => Step::Look,
                _ => bail!("no step has the kind {kind}"),
            });
        }
        parts.push(part);
    }
    Ok(Schedule { parts, places, buffers, pools, touched })
}

#[cfg(test)]
mod tests {
    use super::super::traffic::Traffic;
    use super::super::traffic::tests::random;
    use super::*;

    #[test]
    fn what_is_read_was_written() {
        let mut schedule = Schedule::new(&Traffic::new(&random(3, 500, 5000), 0), 2);
        schedule.touched = 4321;
        let file = encode(&schedule);
        let read_again = read(&file[..]).expect("the same");
        let plain = |schedule: &Schedule| {
            let parts = schedule.parts.iter();
            parts.map(|part| (part.steps.clone(), part.sources.clone(), part.releases)).collect::<Vec<_>>()
        };
        assert_eq!(plain(&read_again), plain(&schedule));
        let sizes =
            |schedule: &Schedule| (schedule.places, schedule.buffers, schedule.pools, schedule.touched);
        assert_eq!(sizes(&read_again), sizes(&schedule));
        assert!(read(&file[..file.len() - 1]).is_err() && read(&file[1..]).is_err());
    }
}

//! Traffic on its way to child processes: flat numbers through a pipe.
//!
//! A child that decoded the trace itself would measure its candidate's memory in a heap that has
//! megabytes of free and resident memory left over. So it reads numbers into vectors of the right
//! size, and frees none of them.

use std::io::{self, BufReader, Read};

use anyhow::{Result, ensure};

use super::traffic::{Act, Buffer, Traffic};

/// The first number of such traffic.
const MAGIC: u32 = 0x6275_6661;

/// Returns the traffic for children, as it is and at twice the connections.
pub(crate) fn both(traffic: &Traffic) -> [Vec<u8>; 2] {
    [encode(traffic), encode(&traffic.at_twice_the_connections())]
}

fn encode(traffic: &Traffic) -> Vec<u8> {
    let counts = [traffic.threads, traffic.buffers.len(), traffic.acts.len()].map(|count| count as u32);
    let buffers = traffic.buffers.iter().flat_map(|buffer| [buffer.bytes, buffer.from, buffer.to]);
    let acts = traffic.acts.iter().flat_map(|(thread, act)| {
        let (Act::Acquire(number) | Act::Release(number)) = act;
        [*thread, (number << 1) | u32::from(matches!(act, Act::Release(_)))]
    });
    let numbers = [MAGIC].into_iter().chain(counts).chain(buffers).chain(acts);
    numbers.flat_map(u32::to_le_bytes).collect()
}

/// Reads traffic that [`both`] encoded.
///
/// # Errors
///
/// When it is something else, or ends too early.
pub(crate) fn read(from: impl Read) -> Result<Traffic> {
    let mut from = BufReader::new(from);
    let mut next = || -> io::Result<u32> {
        let mut bytes = [0; 4];
        from.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    };
    ensure!(next()? == MAGIC, "the standard input has no traffic");
    let threads = next()? as usize;
    let (buffers, acts) = (next()? as usize, next()? as usize);
    let mut traffic = Traffic {
        acts: Vec::with_capacity(acts),
        at_ns: Vec::new(),
        buffers: Vec::with_capacity(buffers),
        threads,
    };
    for _ in 0..buffers {
        traffic.buffers.push(Buffer { bytes: next()?, from: next()?, to: next()? });
    }
    for _ in 0..acts {
        let (thread, what) = (next()?, next()?);
        let act = if what & 1 == 0 { Act::Acquire(what >> 1) } else { Act::Release(what >> 1) };
        traffic.acts.push((thread, act));
    }
    Ok(traffic)
}

#[cfg(test)]
mod tests {
    use super::super::traffic::tests::random;
    use super::*;

    #[test]
    fn what_is_read_was_written() {
        let traffic = Traffic::new(&random(3, 500, 5000));
        let [once, twice] = both(&traffic);
        let read_again = read(&once[..]).expect("the same");
        assert_eq!((read_again.acts, &read_again.buffers), (traffic.acts, &traffic.buffers));
        assert_eq!(read(&twice[..]).expect("twice as much").buffers.len(), 2 * traffic.buffers.len());
        assert!(read(&once[..once.len() - 1]).is_err() && read(&once[1..]).is_err());
    }
}

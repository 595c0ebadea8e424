//! A burst of buffers of one size, after which the program does nothing.

use anyhow::Result;
use buftrials::system;

use crate::trial::Measured;
use crate::work::{Amount, Cell, Work};

/// One buffer in this number is not dropped, where some survive: which is drawn, so that no pattern
/// meets that of a slab.
pub const SURVIVES: usize = 16;
const PAGE_BYTES: usize = 4096;

/// Acquires, fills and drops buffers in this process, and measures it.
///
/// # Errors
///
/// When a buffer is refused, or the system does not say what the process uses.
pub fn run(cell: Cell, amount: Amount) -> Result<Measured> {
    let Work::Burst { bytes, survivors } = cell.work else { anyhow::bail!("{:?} is no burst", cell.work) };
    let pool = cell.pool()?;
    match pool {
        Some(pool) => measure(amount, bytes, survivors, || {
            let mut buf = pool.acquire(bytes)?;
            buf.resize(bytes, 1)?;
            Ok(buf)
        }),
        None => measure(amount, bytes, survivors, || Ok(vec![1_u8; bytes])),
    }
}

fn measure<B: AsRef<[u8]>>(
    amount: Amount,
    bytes: usize,
    survivors: bool,
    acquire: impl Fn() -> Result<B>,
) -> Result<Measured> {
    let own = std::process::id();
    let count = amount.burst_bytes / bytes;
    // It is there before, also where it has no buffer.
    let mut buffers: Vec<Option<B>> = (0..count).map(|_| None).collect();
    let (before, used) = (system::resident(own)?, system::usage(own)?);
    for buffer in &mut buffers {
        *buffer = Some(acquire()?);
    }
    let peak = system::peak(own)?;
    let mut rng = fastrand::Rng::with_seed(count as u64);
    for buffer in &mut buffers {
        if !(survivors && rng.usize(..SURVIVES) == 0) {
            *buffer = None;
        }
    }
    std::thread::sleep(amount.silence);
    let after = system::resident(own)?;
    let used = system::usage(own)?.since(&used);
    let asked = (count * bytes) as u64;
    let held = pages(buffers.iter().flatten().map(AsRef::as_ref)) * PAGE_BYTES;
    Ok(Measured { used, before, peak, after, asked, held: held as u64, ..Measured::default() })
}

/// The number of pages that have bytes of these.
fn pages<'a>(buffers: impl Iterator<Item = &'a [u8]>) -> usize {
    let of = |buffer: &[u8]| {
        let start = buffer.as_ptr().addr();
        start / PAGE_BYTES..(start + buffer.len()).div_ceil(PAGE_BYTES)
    };
    let mut pages: Vec<usize> = buffers.flat_map(of).collect();
    pages.sort_unstable();
    pages.dedup();
    pages.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_pages_count_once() {
        let bytes = vec![0; 4 * PAGE_BYTES];
        let start = bytes.as_ptr().align_offset(PAGE_BYTES);
        let at = |from: usize, length: usize| &bytes[start + from..][..length];
        assert_eq!(pages([at(0, 10), at(20, PAGE_BYTES - 20)].into_iter()), 1);
        assert_eq!(pages([at(4000, 200), at(PAGE_BYTES, 1), at(2 * PAGE_BYTES, 1)].into_iter()), 3);
    }
}

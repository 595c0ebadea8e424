//! A secret that can be searched for in all memory of the process, without being stored for that.

use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;

/// Bytes in a row that are no coincidence.
const SHORTEST: usize = 32;

/// Larger mappings are address space of tools, such as a sanitizer's.
const LARGEST_MAPPING: usize = 1 << 30;

/// Returns the byte of the secret that follows `byte`. All 256 values follow one another.
fn next(byte: u8) -> u8 {
    black_box(byte).wrapping_mul(5).wrapping_add(77)
}

/// Fills `bytes` with the secret.
pub fn write(bytes: &mut [u8]) {
    write_from(0, bytes);
}

/// Fills `bytes` with the secret, from its byte `at` on.
pub fn write_from(at: usize, bytes: &mut [u8]) {
    // It starts over after 256 bytes.
    let mut byte = (0..at % 256).fold(1, |byte, _| next(byte));
    for to in bytes {
        *to = byte;
        byte = next(byte);
    }
}

/// Returns whether `bytes` are a part of the secret, from wherever in it.
pub fn is_in(bytes: &[u8]) -> bool {
    bytes.windows(2).all(|pair| pair[1] == next(pair[0]))
}

/// Returns how many bytes of the secret the memory of this process has, as far as `SHORTEST` or
/// more of them are in a row.
pub fn bytes_in_memory() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").expect("procfs is mounted");
    let memory = File::open("/proc/self/mem").expect("a process reads its own memory");
    let mut piece = vec![0; 64 << 10];
    let piece_at = piece.as_ptr().addr();
    let mut found = 0;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else { continue };
        let bound = |text| usize::from_str_radix(text, 16).expect("an address");
        let (start, end) = range.split_once('-').map(|(from, to)| (bound(from), bound(to))).expect("a range");
        if !rights.starts_with("rw") || end - start > LARGEST_MAPPING {
            continue;
        }
        let (mut at, mut last, mut row) = (start, None, 0);
        while at < end {
            let most = piece.len().min(end - at);
            let Ok(n) = memory.read_at(&mut piece[..most], at as u64) else { break };
            for (offset, &byte) in piece[..n].iter().enumerate() {
                // What was just read is in `piece` too.
                let is_own = (piece_at..piece_at + piece.len()).contains(&(at + offset));
                row = if is_own || last.is_none_or(|last| byte != next(last)) { 1 } else { row + 1 };
                found += match row {
                    SHORTEST => SHORTEST,
                    row => usize::from(row > SHORTEST),
                };
                last = (!is_own).then_some(byte);
            }
            if n == 0 {
                break;
            }
            at += n;
        }
    }
    piece.fill(0);
    black_box(&piece);
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{bytes_in_memory, is_in, write, write_from};

    #[test]
    fn it_is_found_until_it_is_overwritten() {
        let search = || {
            assert_eq!(bytes_in_memory(), 0);
            let mut kept = vec![0; 1000];
            write(&mut kept[3..303]);
            write_from(300, &mut kept[303..803]);
            assert!(is_in(&kept[100..200]) && !is_in(&kept[..10]));
            assert_eq!(bytes_in_memory(), 800);
            kept.fill(0);
            assert_eq!(bytes_in_memory(), 0);
        };
        let name = "it_is_found_until_it_is_overwritten";
        crate::process::alone(module_path!(), name, Duration::from_secs(60), search);
    }
}

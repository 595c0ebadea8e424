//! What the host says that the program should do.

use cortex_m_semihosting::syscall;

/// The last word of the command line.
pub(crate) struct Word {
    line: [u8; 64],
    start: usize,
    end: usize,
}

impl Word {
    pub(crate) fn is(&self, word: &[u8]) -> bool {
        &self.line[self.start..self.end] == word
    }
}

/// Asks the host; nothing where it has no command line to give.
pub(crate) fn last_word() -> Word {
    let mut line = [0; 64];
    let mut block = [line.as_mut_ptr().addr(), line.len()];
    // SAFETY: the host writes a text of at most the length in the block, its end marked by 0, to the address in it, and then the
    // text's length to the block.
    let refused = unsafe { syscall!(GET_CMDLINE, block.as_mut_ptr()) };
    let end = if refused == 0 { line.iter().position(|&byte| byte == 0).unwrap_or(0) } else { 0 };
    let start = line[..end].iter().rposition(|&byte| byte == b' ').map_or(0, |space| space + 1);
    Word { line, start, end }
}

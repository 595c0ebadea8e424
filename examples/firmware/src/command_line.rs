//! What the host says that the program should do.

use cortex_m_semihosting::syscall1;

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
    let mut block = [line.as_mut_ptr().expose_provenance(), line.len()];
    let address = block.as_mut_ptr().expose_provenance();
    // SAFETY: the host writes a text, its end marked by 0, of at most the length in the block, to the address in it, and the text's
    // length into the block.
    let refused = unsafe { syscall1!(GET_CMDLINE, address) };
    let end = if refused == 0 { line.iter().position(|&byte| byte == 0).unwrap_or(0) } else { 0 };
    let start = line[..end].iter().rposition(|&byte| byte == b' ').map_or(0, |space| space + 1);
    Word { line, start, end }
}

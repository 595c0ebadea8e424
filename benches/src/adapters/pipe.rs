//! The operating system's pipe: what the standard library has for bytes between threads.

use std::io::{PipeReader, PipeWriter, Read, Write};

use crate::harness::engine::{Engine, Kind};
use crate::harness::plan::Unsupported;
use crate::harness::serve::Pipe;

pub(super) fn engine() -> Engine {
    Engine::new("pipe", Kind::Control, "`std::io::pipe`: `write_all` and `read_exact`").pipes::<System>()
}

/// Of 64 KiB, whatever is asked for.
pub(crate) struct System;

impl Pipe for System {
    type Writer = PipeWriter;
    type Reader = PipeReader;

    fn build(_bytes: usize) -> Result<(PipeWriter, PipeReader), Unsupported> {
        let (reader, writer) = std::io::pipe().map_err(|error| Unsupported(error.to_string()))?;
        Ok((writer, reader))
    }

    fn write(writer: &mut PipeWriter, bytes: &[u8]) {
        writer.write_all(bytes).expect("the reader lives");
    }

    fn read(reader: &mut PipeReader, into: &mut [u8]) {
        reader.read_exact(into).expect("the writer lives");
    }
}

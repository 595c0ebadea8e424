//! Sends the lines of log files to a collector, in batches.
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::{env, iter, net::TcpStream, thread};

fn read(log: File, lines: SyncSender<Vec<u8>>) -> Result<(), Box<dyn Error>> {
    for line in BufReader::new(log).split(b'\n') {
        lines.send(line?)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let collector = args.next().ok_or("which collector, and which files?")?;
    let mut collector = BufWriter::new(TcpStream::connect(collector)?);
    let (sender, receiver) = sync_channel(4096);
    for path in args {
        let (log, sender) = (File::open(path)?, sender.clone());
        thread::spawn(|| read(log, sender).expect("a log that can be read"));
    }
    drop(sender);
    while let Ok(first) = receiver.recv() {
        for line in iter::once(first).chain(receiver.try_iter()) {
            collector.write_all(&line)?;
            collector.write_all(b"\n")?;
        }
        collector.flush()?;
    }
    Ok(())
}

//! Programs that run beside us: found, started, waited for, and ended whatever happens.

use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::programs;
use crate::shell::{self, command};

/// How long a server may take to accept connections, and a program to end that was told to.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often to look.
const PAUSE: Duration = Duration::from_millis(20);

/// A program that others have written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// How it is asked for its version, and with how many words it answers.
    pub(crate) version: (&'static str, usize),
}

impl Program {
    /// Where it is.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).find_map(|folder| Some(folder.join(self.name)).filter(|path| path.is_file()))
    }

    /// It, to be run.
    pub(crate) fn command(&self) -> Result<Command> {
        Ok(Command::new(self.path().with_context(|| format!("{} is not installed", self.name))?))
    }

    /// What it says about its version, on either output.
    pub(crate) fn version(&self) -> Result<String> {
        let (option, words) = self.version;
        let output = self.command()?.arg(option).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("cannot start {}", self.name))?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        Ok(text.split_whitespace().take(words).collect::<Vec<_>>().join(" "))
    }
}

/// Names all that is missing.
pub(crate) fn check_installed<'a>(programs: impl Iterator<Item = &'a Program>) -> Result<()> {
    let missing: Vec<_> = programs.filter(|program| program.path().is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|program| program.name).collect();
    bail!("not found: {} (`.ci/run` lists packages, `.ci/env` has folders)", names.join(", "))
}

/// A program that is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    shown: String,
}

impl Running {
    /// Starts it; its standard output is ours to read if `piped`, thrown away otherwise.
    pub(crate) fn start(command: &mut Command, piped: bool) -> Result<Self> {
        let shown = shell::show(command);
        eprintln!("$ {shown}");
        command.stdin(Stdio::null()).stdout(if piped { Stdio::piped() } else { Stdio::null() });
        let child = command.spawn().with_context(|| format!("cannot start `{shown}`"))?;
        Ok(Self { child, shown })
    }

    /// Starts it, to be talked with line by line.
    pub(crate) fn start_talking(command: &mut Command) -> Result<(Self, Talk)> {
        let shown = shell::show(command);
        eprintln!("$ {shown}");
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.with_context(|| format!("cannot start `{shown}`"))?;
        let input = child.stdin.take().context("input is piped")?;
        let output = BufReader::new(child.stdout.take().context("output is piped")?);
        Ok((Self { child, shown }, Talk { input, output }))
    }

    /// Its number, for the system.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it accepts connections.
    pub(crate) fn wait_for_port(&mut self, port: u16) -> Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect_timeout(&address, PATIENCE).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("`{}` ended: {status}", self.shown);
            }
            ensure!(Instant::now() < deadline, "`{}` does not accept connections", self.shown);
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// The first line that it prints; the rest is passed on to our standard error.
    pub(crate) fn first_line(&mut self) -> Result<String> {
        let mut output = BufReader::new(self.child.stdout.take().context("output is piped")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        thread::spawn(move || {
            let mut rest = String::new();
            // Output that is not text is of no use to us.
            if output.read_to_string(&mut rest).is_ok() {
                eprint!("{rest}");
            }
        });
        Ok(line)
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn terminate(self) -> Result<()> {
        let id = self.child.id().to_string();
        shell::run(&mut command!("kill -TERM {id}"))?;
        self.finish(PATIENCE)
    }

    /// Waits until it ends by itself, with success.
    pub(crate) fn finish(mut self, within: Duration) -> Result<()> {
        let status = programs::wait(&mut self.child, within)?;
        let status = status.with_context(|| format!("`{}` took longer than {within:?}", self.shown))?;
        ensure!(status.success(), "`{}` failed: {status}", self.shown);
        Ok(())
    }
}

/// The input and the output of a program that answers each line with one.
#[derive(Debug)]
pub(crate) struct Talk {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Talk {
    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? != 0, "the program says no more");
        Ok(line.trim_end().to_owned())
    }

    /// Its answer to a line.
    pub(crate) fn ask(&mut self) -> Result<String> {
        self.input.write_all(b"\n")?;
        self.line()
    }

    /// What it says until it ends.
    pub(crate) fn rest(mut self) -> Result<String> {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest)?;
        Ok(rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to kill, and waiting returns at once.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr()?.port())
}

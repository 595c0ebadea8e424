//! The firmware for a microcontroller: built, run in an emulator, and measured.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::compilers::{self, Library};
use crate::packages;
use crate::programs;
use crate::shell::{self, command};
use crate::steps::{Outcome, Steps};
use crate::test_binaries::{self, Ran};

/// The firmware, a workspace of its own.
pub(crate) const MANIFEST: &str = "examples/firmware/Cargo.toml";
/// Its processor: 32 bits, no operating system, atomics with compare-exchange.
pub(crate) const PLATFORM: &str = "thumbv7m-none-eabi";
const EMULATOR: &str = "qemu-system-arm";
/// Several times what it takes; what hangs is a failure.
const LIMIT: Duration = Duration::from_secs(240);

/// `heapless` asks the compiler whether the processor has certain instructions, which it has. A compiler that builds its library from
/// source has no answer.
const FLAGS: &str = "-Dwarnings --cfg arm_llsc";

/// What the names of programs begin with whose sizes are printed. One uses nothing, which is taken off the others.
const SIZE: &str = "size-";
/// Where they are told.
const DOCUMENTED: &str = "docs/embedded.md";
const NOTHING: &str = "size-none";

/// Runs that have to fail: what is asked of the firmware, and what it then says.
const WRONG: [(&str, &str); 2] = [("corrupt", "the check at src/link.rs"), ("panic", "as asked for")];

/// How many steps [`add`] adds.
pub(crate) const STEPS: usize = 4;

/// The steps of `cargo xtask nostd` that are about the firmware.
pub(crate) fn add(steps: &mut Steps) {
    steps.step("firmware, run", || run("", "firmware: all is well", true));
    steps.step("firmware, wrong runs fail", || {
        for (word, says) in WRONG {
            if let Outcome::Skipped(reason) = run(word, says, false)? {
                return Outcome::skipped(reason);
            }
        }
        Ok(Outcome::Passed)
    });
    steps.step("firmware, sizes", sizes);
    steps.step("firmware, as a user has it", as_a_user);
}

/// Builds all programs of the firmware; the folder they are in, or `None` without a compiler.
fn build() -> Result<Option<PathBuf>> {
    build_package(Path::new(MANIFEST), &[])
}

/// Builds the programs of a package, with options of cargo.
fn build_package(manifest: &Path, more: &[&str]) -> Result<Option<PathBuf>> {
    let Some(mut command) = compilers::cargo_for(PLATFORM, Library::Alloc)? else { return Ok(None) };
    let folder = "target/firmware";
    command.args(["build", "--quiet", "--release", "--target", PLATFORM, "--target-dir", folder]);
    command.args(more).arg("--manifest-path").arg(manifest);
    command.env("RUSTFLAGS", FLAGS);
    command.env(compilers::variable(PLATFORM, "LINKER"), compilers::linker()?);
    shell::run(&mut command)?;
    Ok(Some(Path::new(folder).join(PLATFORM).join("release")))
}

/// Runs it: it has to end with success or not, and to say `says`, so that an emulator that does not start is no success at failing.
fn run(word: &str, says: &str, succeeds: bool) -> Result<Outcome> {
    if !shell::works(Command::new(EMULATOR).arg("--version")) {
        return Outcome::skipped(format!("{EMULATOR} not installed"));
    }
    let Some(folder) = build()? else { return Outcome::skipped(compilers::MISSING) };
    let wire = Wire::new(&folder.join("wire"))?;
    let ran = emulate(&folder.join("firmware"), word, &wire.ports()?)?;
    ensure!(ran.status.is_some() && ran.passed() == succeeds, "the firmware ended with {}", ran.how());
    ensure!(ran.log.contains(says), "the firmware ended as it should, but not with `{says}`");
    Ok(Outcome::Passed)
}

/// Runs a program in the emulator, with a word on its command line and the emulator's options for the ports.
fn emulate(kernel: &Path, word: &str, ports: &[String]) -> Result<Ran> {
    let mut command = command!(
        "{EMULATOR} -machine lm3s6965evb -cpu cortex-m3 -display none -monitor none
         -semihosting-config enable=on,target=native,arg=firmware,arg={word}
         {ports...} -kernel {kernel}"
    );
    eprintln!("$ {}", shell::show(&command));
    let ran = test_binaries::run(command.stdin(Stdio::null()), &kernel.with_extension("log"), LIMIT)?;
    print!("{}", ran.log);
    Ok(ran)
}

/// Builds the firmware of the documentation outside of the workspace, and the one that does the same without our packages. Where there
/// is an emulator, both print the same sum.
fn as_a_user() -> Result<Outcome> {
    let sum: u32 = (0..996_u32).map(|number| (number % 256) * (number % 256)).sum();
    let manifest =
        programs::copy(programs::FIRMWARE, Path::new("examples/firmware/Cargo.lock"))?.join("Cargo.toml");
    for (options, program) in
        [(["--bin", "firmware"], "firmware"), (["--example", "today"], "examples/today")]
    {
        let Some(folder) = build_package(&manifest, &options)? else {
            return Outcome::skipped(compilers::MISSING);
        };
        if !shell::works(Command::new(EMULATOR).arg("--version")) {
            return Outcome::skipped(format!("it builds, but {EMULATOR} is not installed"));
        }
        let ran = emulate(&folder.join(program), "", &[])?;
        ensure!(ran.passed(), "{program} ended with {}", ran.how());
        // The emulator has its say before.
        let printed = ran.log.lines().last().unwrap_or_default();
        ensure!(printed == sum.to_string(), "the packets sum up to {sum}, and not to {printed}");
    }
    Ok(Outcome::Passed)
}

/// A wire between the two serial ports: two pipes, each with both of its names.
struct Wire(PathBuf);

impl Wire {
    fn new(folder: &Path) -> Result<Self> {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => fs::create_dir_all(folder)?,
        }
        for (from, to) in [("left", "right"), ("right", "left")] {
            let pipe = format!("{from}.out");
            let path = folder.join(&pipe);
            shell::run(&mut command!("mkfifo {path}"))?;
            symlink(&pipe, folder.join(format!("{to}.in")))?;
        }
        Ok(Self(folder.to_owned()))
    }

    /// The emulator's options for the two ports.
    fn ports(&self) -> Result<Vec<String>> {
        let folder = self.0.to_str().context("the folder's name is text")?;
        let port = |end| {
            let device = format!("pipe,id={end},path={folder}/{end}");
            ["-chardev".to_owned(), device, "-serial".to_owned(), format!("chardev:{end}")]
        };
        Ok(["left", "right"].into_iter().flat_map(port).collect())
    }
}

/// Prints what each strategy takes of the flash and of the memory.
fn sizes() -> Result<Outcome> {
    if !shell::works(Command::new("size").arg("--version")) {
        return Outcome::skipped("no `size`: binutils not installed");
    }
    let Some(folder) = build()? else { return Outcome::skipped(compilers::MISSING) };
    let of = |program: &str| {
        let program = folder.join(program);
        size(&shell::output(&mut command!("size {program}"))?)
    };
    let (flash, memory) = of(NOTHING)?;
    println!("| | flash, bytes | RAM, bytes |\n| --- | --- | --- |");
    println!("| an empty program with a region of 4096 bytes | {flash} | {memory} |");
    let (text, mut stale) = (fs::read_to_string(DOCUMENTED)?, Vec::new());
    let packages = packages::all_of(Path::new(MANIFEST).parent().context("a manifest has a folder")?)?;
    let programs = packages.iter().flat_map(|package| &package.targets).map(|target| target.name.as_str());
    for (program, name) in programs.filter_map(|program| Some((program, program.strip_prefix(SIZE)?))) {
        let (more_flash, more_memory) = of(program)?;
        if program != NOTHING {
            let more = [(more_flash, flash), (more_memory, memory)];
            let [flash, memory] = more.map(|(more, less)| more.cast_signed() - less.cast_signed());
            println!("| {name} | {flash} | {memory} |");
            stale.extend((!is_told(&text, name, [flash, memory])).then_some(name));
        }
    }
    ensure!(stale.is_empty(), "{DOCUMENTED} has other sizes of {}", stale.join(", "));
    Ok(Outcome::Passed)
}

/// Whether a text's table has these sizes of a program, or almost: compilers differ.
fn is_told(text: &str, name: &str, sizes: [i64; 2]) -> bool {
    let mut rows = text.lines().filter_map(|line| line.strip_prefix(&format!("| {name} | ")));
    rows.any(|row| {
        let told: Vec<i64> = row.split('|').filter_map(|cell| cell.trim().parse().ok()).collect();
        told.len() == 2 && told.iter().zip(sizes).all(|(told, size)| (told - size).abs() <= told.abs() / 20)
    })
}

/// Flash and memory, of what `size` prints: `text data bss …`, below a line of headings. A variable with a value at the start is in both.
fn size(table: &str) -> Result<(u64, u64)> {
    let row = table.lines().nth(1).context("`size` printed no table")?;
    let numbers = row.split_whitespace().take(3).map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let [text, data, bss] = numbers[..] else { anyhow::bail!("`size` printed `{row}`") };
    Ok((text + data, data + bss))
}

#[cfg(test)]
mod tests {
    use super::{is_told, size};

    #[test]
    fn sizes_are_those_of_the_text() {
        let text = "| a | 1000 | 12 |\n| b | -40 | 0 |\n";
        assert!(
            is_told(text, "a", [1000, 12]) && is_told(text, "a", [1050, 12]) && is_told(text, "b", [-40, 0])
        );
        for sizes in [[1051, 12], [949, 12], [1000, 13]] {
            assert!(!is_told(text, "a", sizes));
        }
        assert!(!is_told(text, "c", [0, 0]));
    }

    #[test]
    fn the_table_is_read() {
        let table = "   text\t   data\t    bss\t    dec\t    hex\tfilename\n    596\t     4\t   4100\t   4700\t   125c\ta\n";
        assert_eq!(size(table).unwrap(), (600, 4104));
        assert!(size("").is_err() && size("a\nb c d").is_err());
    }
}

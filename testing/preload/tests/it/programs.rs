//! Programs of the system.

use std::env;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use buftrace::{Ending, Profile};

use crate::{Folder, has, recorded};

fn output(mut command: Command, input: &Path) -> Vec<u8> {
    // Perl warns of a locale that this machine does not have.
    command.env("LC_ALL", "C").stdin(fs::File::open(input).unwrap());
    let output = command.output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    assert!(errors.is_empty(), "{errors}");
    output.stdout
}

/// The file of a program. A script of that name would start it by `exec`, which is not recorded.
fn program_file(program: &str) -> Option<String> {
    let folders = env::var_os("PATH").filter(|_| has(program))?;
    let files = env::split_paths(&folders).map(|folder| folder.join(program));
    let mut programs = files.filter(|file| fs::read(file).is_ok_and(|start| start.starts_with(b"\x7fELF")));
    programs.next()?.into_os_string().into_string().ok()
}

/// A text of a few megabytes.
fn text(folder: &Folder) -> std::path::PathBuf {
    let path = folder.0.join("text");
    let mut file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    let mut random = 1_u32;
    for _ in 0..100_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        writeln!(file, "{random:x} line of a text to be sorted").unwrap();
    }
    path
}

fn check(profile: &Profile, program: &str) {
    assert_eq!((profile.ending(), profile.lost()), (Ending::Stopped, 0), "{program}");
    // All that gzip needs is in the program itself.
    assert!(program == "gzip" || !profile.objects().is_empty(), "{program}");
    let name = profile.info().program.rsplit('/').next().unwrap().to_owned();
    assert!(name.starts_with(program), "{name}");
    // The stacks are of code that is known.
    let known = profile.objects().iter().filter(|object| {
        let stack = profile.stack(object.stack);
        !stack.is_empty() && stack.iter().all(|address| profile.module_of(object.stack, *address).is_some())
    });
    assert!(known.count() * 10 >= profile.objects().len() * 9, "{program}");
}

#[test]
fn filters_print_what_they_print() {
    let folder = Folder::new("filters");
    let input = text(&folder);
    for (program, arguments) in [
        ("sort", &["--parallel=2"][..]),
        ("gzip", &["-c"]),
        ("perl", &["-ne", "push @lines, $_; END { print reverse @lines }"]),
        ("python3", &["-c", "import sys; print(len(sys.stdin.read().split()) * 'x' * 2)"]),
    ] {
        let Some(path) = program_file(program) else { continue };
        let mut plain = Command::new(&path);
        plain.args(arguments);
        let expected = output(plain, &input);
        for options in ["exact", "rate=64KiB"] {
            let file = folder.0.join("out.heap");
            let mut command = recorded(&path, &file, options);
            command.args(arguments);
            assert!(output(command, &input) == expected, "{program} with {options}");
            let profiles = folder.profiles();
            assert_eq!(profiles.len(), 1, "{program}");
            check(&profiles[0], program);
            for entry in fs::read_dir(&folder.0).unwrap() {
                let path = entry.unwrap().path();
                if path.to_str().unwrap().contains(".heap") {
                    fs::remove_file(path).unwrap();
                }
            }
        }
    }
}

/// Without the variable nothing is written, and nothing is said.
#[test]
fn it_waits_to_be_asked() {
    if !has("sort") {
        return;
    }
    let folder = Folder::new("unasked");
    let input = text(&folder);
    let mut command = recorded("sort", &folder.0.join("none.heap"), "");
    command.env_remove("BUFTRACE");
    assert!(!output(command, &input).is_empty());
    assert!(folder.profiles().is_empty());
}

//! Programs of the system.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use buftrace::{Ending, Profile};

use crate::{Folder, has, recorded};

fn output(mut command: Command, input: &Path) -> Vec<u8> {
    let output = command.stdin(fs::File::open(input).unwrap()).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    assert!(errors.is_empty(), "{errors}");
    output.stdout
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
        !stack.is_empty() && stack.iter().all(|address| profile.module_of(*address).is_some())
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
        if !has(program) {
            continue;
        }
        let mut plain = Command::new(program);
        plain.args(arguments);
        let expected = output(plain, &input);
        for options in ["exact", "rate=64KiB"] {
            let file = folder.0.join("out.heap");
            let mut command = recorded(program, &file, options);
            command.args(arguments);
            assert!(output(command, &input) == expected, "{program} with {options}");
            let profiles = folder.profiles();
            // A program of that name may be a script, which starts the one with that name.
            let one = profiles.iter().find(|profile| profile.info().program.contains(program));
            check(one.unwrap_or_else(|| panic!("{program} is not recorded")), program);
            for entry in fs::read_dir(&folder.0).unwrap() {
                let path = entry.unwrap().path();
                if path.to_str().unwrap().contains(".heap") {
                    fs::remove_file(path).unwrap();
                }
            }
        }
    }
}

/// A shell and what it starts write to files of their own, and none into another's.
#[test]
fn each_process_has_its_file() {
    if !has("sh") || !has("sort") {
        return;
    }
    let folder = Folder::new("processes");
    let input = text(&folder);
    let file = folder.0.join("all-%p.heap");
    let mut command = recorded("sh", &file, "exact,min=4KiB");
    command.args(["-c", "sort | sort -r | head -c 1000 > /dev/null; sort /dev/null; exit 0"]);
    let output = command.stdin(fs::File::open(&input).unwrap()).stderr(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let profiles = folder.profiles();
    let sorts = profiles.iter().filter(|profile| profile.info().program.ends_with("sort"));
    assert!(sorts.count() >= 2, "{}", profiles.len());
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

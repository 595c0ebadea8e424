//! `cargo xtask ci bare`: the README's test command as a newcomer runs it, on a machine that has nothing but what the README asks for.
//!
//! The surroundings: a fresh clone in a folder with a space in its name, a user who is not the superuser, and a `PATH` with the programs of
//! Debian's essential packages, of `gcc`, `libc6-dev` and `git` and of what these depend on, and with the pinned toolchain. Servers, emulators,
//! debuggers and other toolchains do not exist there.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::shell;
use crate::steps::Outcome;

/// What the README asks for, beside a toolchain.
const ASKED_FOR: [&str; 3] = ["gcc", "git", "libc6-dev"];
/// Where the packages' descriptions are.
const STATUS: &str = "/var/lib/dpkg/status";
const LISTS: &str = "/var/lib/dpkg/info";
/// Folders of programs that everybody may start.
const PROGRAMS: [&str; 2] = ["/usr/bin/", "/bin/"];
/// Programs that the tests must do without. That they are not found is checked, so that this job shows what it says.
const ABSENT: [&str; 6] = ["nginx", "qemu-system-arm", "redis-server", "rustup", "valgrind", "wrk"];
/// How this machine reaches the registry, where it says so.
const NETWORK: [&str; 7] =
    ["ALL_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_DIR", "SSL_CERT_FILE", "https_proxy", "no_proxy"];
/// Nobody in particular.
const USER: &str = "65534";

/// Whether the surroundings can be made here, or why not.
pub(crate) fn possible() -> Result<Outcome> {
    if !Path::new(STATUS).is_file() {
        return Outcome::skipped("no packages of Debian's");
    }
    if become_nobody().is_none() {
        return Outcome::skipped("cannot become another user without setpriv and root or sudo");
    }
    Ok(Outcome::Passed)
}

/// Makes the surroundings and runs the command in them.
pub(crate) fn run() -> Result<Outcome> {
    if let Outcome::Skipped(reason) = possible()? {
        return Outcome::skipped(reason);
    }
    let place = Place::make()?;
    let (Some(mut command), here) = (become_nobody(), env::current_dir()?) else {
        bail!("cannot become another user any more");
    };
    let clone = place.folder.join("a clone");
    shell::run(Command::new("git").args(["clone", "--quiet", "--no-local"]).arg(&here).arg(&clone))?;
    place.open_to_all(&clone)?;
    command.args(["env", "-i", "LANG=C.UTF-8", "USER=nobody"]);
    for (name, value) in
        [("HOME", "home"), ("CARGO_HOME", "home/cargo"), ("PATH", "programs"), ("TMPDIR", "tmp")]
    {
        command.arg(format!("{name}={}", place.folder.join(value).display()));
    }
    for (name, value) in NETWORK.iter().filter_map(|name| Some((name, env::var(name).ok()?))) {
        command.arg(format!("{name}={value}"));
    }
    command.args(["sh", "-c", &script()]).current_dir(&clone);
    shell::run(&mut command)?;
    Ok(Outcome::Passed)
}

/// Sees that what must be absent is, and runs the command.
fn script() -> String {
    let absent = ABSENT.join(" ");
    format!(
        "test \"$(id -u)\" = {USER} || exit 1
        for program in {absent}; do
            if command -v $program; then echo \"bare: $program can be found\"; exit 1; fi
        done
        echo \"bare: user $(id -u), in '$PWD', $(ls \"$PATH\" | wc -l) programs, without {absent}\"
        exec cargo xtask test"
    )
}

/// The start of a command that runs as another user; none where we may not.
fn become_nobody() -> Option<Command> {
    let arguments = ["--reuid", USER, "--regid", USER, "--clear-groups", "--no-new-privs"];
    let mut direct = Command::new("setpriv");
    direct.args(arguments);
    let mut by_sudo = Command::new("sudo");
    by_sudo.args(["-n", "setpriv"]).args(arguments);
    let try_out = |command: &Command| {
        let mut trial = Command::new(command.get_program());
        shell::works(trial.args(command.get_args()).arg("true"))
    };
    [direct, by_sudo].into_iter().find(try_out)
}

/// A folder that another user can enter, removed with this.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn make() -> Result<Self> {
        let folder = env::temp_dir().join(format!("bufworks bare {}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let place = Self { folder };
        for name in ["home/cargo", "programs", "tmp"] {
            fs::create_dir_all(place.folder.join(name))?;
        }
        place.link_programs()?;
        place.link_toolchain()?;
        place.copy_registry()?;
        place.open_to_all(&place.folder.join("home"))?;
        place.open_to_all(&place.folder.join("tmp"))?;
        Ok(place)
    }

    /// Links the programs of the packages.
    fn link_programs(&self) -> Result<()> {
        let status = fs::read_to_string(STATUS)?;
        let mut linked = 0;
        for package in closure(&status) {
            for file in files_of(&package) {
                let name = PROGRAMS.iter().find_map(|folder| file.strip_prefix(folder));
                let Some(name) = name.filter(|name| !name.contains('/')) else { continue };
                linked += usize::from(symlink(&file, self.folder.join("programs").join(name)).is_ok());
            }
        }
        // Names that a choice of Debian's points to, such as `awk` and `cc`, are in no list.
        for name in ["awk", "cc"] {
            drop(symlink(Path::new("/usr/bin").join(name), self.folder.join("programs").join(name)));
        }
        ensure!(linked > 0, "the packages have no programs");
        Ok(())
    }

    /// Links to the pinned toolchain itself, not rustup's stand-ins for its programs: those would find other toolchains.
    fn link_toolchain(&self) -> Result<()> {
        let root = shell::output(Command::new("rustc").args(["--print", "sysroot"]))?;
        let (from, to) = (Path::new(root.trim()), self.folder.join("toolchain"));
        // It is more than a gigabyte, so its files are copied only where they are on another file system.
        if !shell::works(Command::new("cp").arg("-rlL").arg(from).arg(&to)) {
            copy(from, &to)?;
        }
        for program in fs::read_dir(self.folder.join("toolchain/bin"))? {
            let program = program?;
            let link = self.folder.join("programs").join(program.file_name());
            symlink(program.path(), &link).with_context(|| format!("cannot make {}", link.display()))?;
        }
        Ok(())
    }

    /// What cargo has fetched, and where it fetches from.
    fn copy_registry(&self) -> Result<()> {
        let home = match env::var_os("CARGO_HOME") {
            Some(home) => PathBuf::from(home),
            None => env::home_dir().context("no home folder")?.join(".cargo"),
        };
        for name in ["config.toml", "registry/index", "registry/cache"] {
            let (from, to) = (home.join(name), self.folder.join("home/cargo").join(name));
            if from.exists() {
                fs::create_dir_all(to.parent().context("it has a parent")?)?;
                copy(&from, &to)?;
            }
        }
        Ok(())
    }

    /// Gives `path` and all below it to the other user.
    fn open_to_all(&self, path: &Path) -> Result<()> {
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o755))?;
        shell::run(Command::new("chmod").args(["-R", "a+rwX"]).arg(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Another user's files: not all may be ours to remove. What stays is in the folder for such things.
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// Copies a file or a folder with all below it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    shell::run(Command::new("cp").args(["-rL", "--reflink=auto"]).arg(from).arg(to))
}

/// The essential packages, those that are asked for, and all that these depend on.
fn closure(status: &str) -> BTreeSet<String> {
    let mut needs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut open: Vec<&str> = ASKED_FOR.to_vec();
    for stanza in status.split("\n\n") {
        let field = |name: &str| stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let Some(package) = field("Package") else { continue };
        if field("Essential") == Some("yes") {
            open.push(package);
        }
        let wanted = ["Depends", "Pre-Depends"].into_iter().filter_map(field);
        let names = wanted.flat_map(|list| list.split([',', '|'])).filter_map(|one| {
            let name = one.split_whitespace().next()?;
            // `python3:any` is the package `python3`.
            name.split(':').next()
        });
        needs.entry(package).or_default().extend(names);
    }
    let mut closed = BTreeSet::new();
    while let Some(name) = open.pop() {
        if let Some(wanted) = needs.get(name).filter(|_| !closed.contains(name)) {
            closed.insert(name.to_owned());
            open.extend(wanted);
        }
    }
    closed
}

/// The files of an installed package.
fn files_of(package: &str) -> Vec<String> {
    let architecture = match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let lists = [format!("{package}.list"), format!("{package}:{architecture}.list")];
    let text = lists.iter().find_map(|name| fs::read_to_string(Path::new(LISTS).join(name)).ok());
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::closure;

    #[test]
    fn packages_come_with_what_they_need() {
        let status = "Package: bash\nEssential: yes\nPre-Depends: libc6 (>= 2.36)\n\n\
                      Package: libc6\nDepends: libgcc-s1, perl:any | none\n\nPackage: libgcc-s1\n\n\
                      Package: perl\n\nPackage: gcc\nDepends: gcc-12 (>= 12), cpp\n\nPackage: gcc-12\n\n\
                      Package: redis-server\nDepends: libc6\n";
        let closed: Vec<_> = closure(status).into_iter().collect();
        assert_eq!(closed, ["bash", "gcc", "gcc-12", "libc6", "libgcc-s1", "perl"]);
    }
}

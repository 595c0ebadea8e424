//! How short of memory the system is, from files that the tests write, and from a control group
//! where one can be made.

use bufkeeper::{MemoryUse, Pressure, PressureLevel, PressureSource};

use super::keeper::Files;

const MOUNTS: &str = "\
22 1 0:20 / /proc rw,nosuid - proc proc rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw
";

fn used(pressure: Pressure) -> Option<(u64, u64)> {
    pressure.memory.map(|memory| (memory.used_bytes, memory.limit_bytes))
}

#[test]
fn of_version_2() {
    let files = Files::new("version-2");
    files.write("proc/self/cgroup", "0::/user.slice/app\n");
    files.write("proc/self/mountinfo", "30 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    let source = PressureSource::under(&files.0);
    assert_eq!(source.read(), Pressure::default(), "nothing is there");
    assert_eq!(source.read().level(), PressureLevel::Unknown);
    // The group that contains it is nearer to its limit.
    files.write("sys/fs/cgroup/user.slice/memory.current", "750\n");
    files.write("sys/fs/cgroup/user.slice/memory.high", "max\n");
    files.write("sys/fs/cgroup/user.slice/memory.max", "1000\n");
    files.write("sys/fs/cgroup/user.slice/app/memory.current", "700\n");
    files.write("sys/fs/cgroup/user.slice/app/memory.high", "max\n");
    files.write("sys/fs/cgroup/user.slice/app/memory.max", "5000\n");
    assert_eq!(used(source.read()), Some((750, 1000)));
    assert_eq!(source.read().level(), PressureLevel::Medium);
    // Files that nobody reads go first.
    files.write("sys/fs/cgroup/user.slice/memory.stat", "anon 100\ninactive_anon 9\ninactive_file 600\n");
    assert_eq!(used(source.read()), Some((150, 1000)));
    assert_eq!(source.read().level(), PressureLevel::Low);
    files.write("sys/fs/cgroup/user.slice/app/memory.high", "720\n");
    assert_eq!(used(source.read()), Some((700, 720)), "`memory.high` is the lower limit");
    assert_eq!(source.read().level(), PressureLevel::High);
    // The stalls of the group, and of the whole system.
    files.write("sys/fs/cgroup/user.slice/app/memory.high", "max");
    files.write("sys/fs/cgroup/user.slice/app/memory.pressure", "some avg10=20.00\nfull avg10=1.00\n");
    files.write("proc/pressure/memory", "some avg10=3.00\nfull avg10=2.00\n");
    let stall = source.read().stall.expect("both files are there");
    assert_eq!((stall.some_percent, stall.full_percent), (20.0, 2.0));
    assert_eq!(source.read().level(), PressureLevel::Medium);
    files.write("sys/fs/cgroup/user.slice/app/memory.pressure", "rubbish");
    assert_eq!(source.read().level(), PressureLevel::Low);
}

#[test]
fn of_version_1() {
    let files = Files::new("version-1");
    files.write("proc/self/cgroup", "9:cpu,memory_other:/no\n4:memory:/app/one\n0::/\n");
    files.write("proc/self/mountinfo", MOUNTS);
    let source = PressureSource::under(&files.0);
    files.write("sys/fs/cgroup/memory/app/one/memory.usage_in_bytes", "900\n");
    files.write("sys/fs/cgroup/memory/app/one/memory.limit_in_bytes", "9223372036854771712\n");
    assert_eq!(source.read().memory, None, "that is no limit");
    files.write("sys/fs/cgroup/memory/app/one/memory.limit_in_bytes", "1000\n");
    assert_eq!(source.read().level(), PressureLevel::High);
    files.write("sys/fs/cgroup/memory/app/one/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
    assert_eq!(used(source.read()), Some((400, 1000)));
}

/// A container shows its own group alone, as the root of the mount.
#[test]
fn in_a_container() {
    for (own, mounted) in
        [("/", "/"), ("/docker/12ab", "/docker/12ab"), ("/docker/12ab", "/../.."), ("/..", "/")]
    {
        let files = Files::new("container");
        files.write("proc/self/cgroup", &format!("0::{own}\n"));
        let mounts = format!("30 23 0:27 {mounted} /sys/fs/cgroup ro - cgroup2 cgroup ro\n");
        files.write("proc/self/mountinfo", &mounts);
        files.write("sys/fs/cgroup/memory.current", "80\n");
        files.write("sys/fs/cgroup/memory.max", "100\n");
        assert_eq!(used(PressureSource::under(&files.0).read()), Some((80, 100)), "{own} in {mounted}");
    }
}

#[test]
fn what_it_reads_may_be_anything() {
    let files = Files::new("anything");
    for text in ["", "\n", "::", "0::", "0:::::/a", "4:memory", "\u{fffd}\n\n0::/x\n", "0::../../../..\n"] {
        files.write("proc/self/cgroup", text);
        for mounts in ["", MOUNTS, "- - - - -", " - cgroup2 a b", "1 2 3 / .. - cgroup2 cgroup2 rw"] {
            files.write("proc/self/mountinfo", mounts);
            assert_eq!(PressureSource::under(&files.0).read(), Pressure::default(), "{text:?}, {mounts:?}");
        }
    }
}

#[test]
fn of_this_system() {
    let pressure = Pressure::read();
    if cfg!(not(any(target_os = "linux", target_os = "android"))) {
        assert_eq!(pressure, Pressure::default());
    }
    assert!(pressure.memory.is_none_or(|memory: MemoryUse| memory.used_bytes > 0), "{pressure:?}");
}

/// A control group is made for a process, with a limit that it comes near to. A keeper sees it.
#[cfg(target_os = "linux")]
#[test]
fn of_a_group_that_is_made_for_it() {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use bufkeeper::Keeper;
    use testkit::process::alone;

    use self::group::Made;
    use super::keeper::{Event, Fake};

    const MIB: usize = 1 << 20;
    alone(module_path!(), "of_a_group_that_is_made_for_it", Duration::from_secs(60), || {
        let Some(_group) = Made::with_limit(256 * MIB) else {
            return eprintln!("no control group can be made here");
        };
        let source = PressureSource::system();
        let memory = source.read().memory.expect("the group has a limit");
        assert_eq!(memory.limit_bytes, 256 * MIB as u64);
        assert!(memory.percent() < 70, "{memory:?}");
        let pool = Arc::new(Fake::default());
        let mut keeper = Keeper::new().watch(&pool);
        let next = keeper.tick(Instant::now());
        assert!(matches!(pool.events()[..], [Event::Idle(_)]), "there is enough");
        // An optimised build leaves out what nobody sees.
        let most = std::hint::black_box(vec![1_u8; 235 * MIB]);
        let pressure = source.read();
        assert_eq!(pressure.level(), PressureLevel::High, "{pressure:?}");
        keeper.tick(next);
        assert_eq!(pool.events(), [Event::Trim]);
        drop(most);
        let pressure = source.read();
        assert!(pressure.memory.is_some_and(|memory| memory.percent() < 70), "{pressure:?}");
    });
}

/// Control groups that tests make.
#[cfg(target_os = "linux")]
mod group {
    use std::fs;
    use std::path::{Path, PathBuf};

    /// A control group below this process's own, which this process is in until this is dropped.
    pub(super) struct Made {
        path: PathBuf,
        was_in: PathBuf,
    }

    impl Made {
        /// `None` where none can be made.
        pub(super) fn with_limit(bytes: usize) -> Option<Self> {
            let own = fs::read_to_string("/proc/self/cgroup").ok()?;
            let first = own.lines().find_map(|line| line.split_once(":memory:").map(|(_, path)| path));
            let second = own.lines().find_map(|line| line.strip_prefix("0::"));
            let first = first.map(|path| ("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
            let second = second.map(|path| ("/sys/fs/cgroup", path, "memory.max"));
            [first, second].into_iter().flatten().find_map(|(mount, path, limit)| {
                let was_in = Path::new(mount).join(path.trim_start_matches('/'));
                let path = was_in.join(format!("bufcore-test-{}", std::process::id()));
                fs::create_dir(&path).ok()?;
                let made = Self { path, was_in };
                // Elsewhere it is a folder like any other.
                made.path.join(limit).exists().then_some(())?;
                fs::write(made.path.join(limit), bytes.to_string()).ok()?;
                fs::write(made.path.join("cgroup.procs"), std::process::id().to_string()).ok()?;
                Some(made)
            })
        }
    }

    impl Drop for Made {
        fn drop(&mut self) {
            let _ = fs::write(self.was_in.join("cgroup.procs"), std::process::id().to_string());
            let _ = fs::remove_dir(&self.path);
        }
    }
}

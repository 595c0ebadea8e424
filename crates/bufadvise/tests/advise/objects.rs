//! Names of code in shared objects: with debug information, stripped, and changed since the
//! recording.

use core::ffi::c_void;
use std::ffi::CString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use buftrace::hooks;
use serde_json::Value;

use super::folder;
use super::heap::{functions, memory, places, recorded, shown};

/// Calls back through a function that has a symbol of its own, and one that is exported.
const SOURCE: &str = "
__attribute__((noinline)) static int hidden_function(void (*call)(void)) { call(); return PADDING; }
int exported_function(void (*call)(void)) { return hidden_function(call) + 1; }
";

/// Compiles the library; nothing where there is no compiler.
fn compile(folder: &Path, library: &Path, arguments: &[&str]) -> Option<()> {
    let source = folder.join("through.c");
    fs::write(&source, SOURCE).expect("the source is written");
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O1", "-g", "-funwind-tables"]).args(arguments);
    let Ok(output) = command.arg("-o").arg(library).arg(&source).output() else {
        eprintln!("skipped: no cc here");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

extern "C-unwind" fn requests() {
    hooks::allocated(memory(1), 5000, false);
    hooks::freed(memory(1));
}

/// Records a request that comes through the library.
fn record(folder: &Path, library: &Path) -> PathBuf {
    let name = CString::new(library.as_os_str().as_bytes()).expect("a path");
    // SAFETY: the library has no constructors.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null(), "{}", library.display());
    // SAFETY: the handle is that of the library.
    let function = unsafe { libc::dlsym(handle, c"exported_function".as_ptr()) };
    assert!(!function.is_null());
    // SAFETY: the function has this type by the source.
    let function: extern "C-unwind" fn(extern "C-unwind" fn()) -> i32 =
        unsafe { core::mem::transmute::<*mut c_void, _>(function) };
    recorded(folder.join("app.heap"), || {
        function(requests);
    })
}

/// The frames in the library, and why it has no names.
fn frames<'a>(found: &'a Value, library: &Path) -> (Vec<&'a Value>, Option<&'a str>) {
    let path = library.to_str().expect("UTF-8");
    let place = &places(found)[0];
    let all = place["frames"].as_array().expect("frames");
    let why = found["heap"]["nameless"][path].as_str();
    (all.iter().filter(|frame| frame["module"] == path).collect(), why)
}

fn names<'a>(frames: &[&'a Value]) -> Vec<Option<&'a str>> {
    frames.iter().map(|frame| frame["function"].as_str()).collect()
}

const BOTH: [Option<&str>; 2] = [Some("hidden_function"), Some("exported_function")];

#[test]
fn a_shared_object_has_names_until_it_is_changed() {
    let folder = folder("object");
    let library = folder.join("libthrough.so");
    let Some(()) = compile(&folder, &library, &["-DPADDING=1", "-Wl,--build-id"]) else { return };
    let recording = record(&folder, &library);
    let found = shown(&recording, &["--frames", "9"]);
    let (in_it, why) = frames(&found, &library);
    assert_eq!((names(&in_it), why), (BOTH.to_vec(), None), "{found}");
    assert!(in_it[1]["file"].as_str().is_some_and(|file| file.ends_with("through.c")), "{found}");
    assert_eq!((&in_it[0]["line"], &in_it[1]["line"]), (&2.into(), &3.into()));
    assert!(functions(&places(&found)[0])[0].ends_with("requests"), "{found}");

    // As a build does it: another file of the same name.
    fs::remove_file(&library).expect("it was there");
    compile(&folder, &library, &["-DPADDING=2", "-Wl,--build-id"]);
    let found = shown(&recording, &["--frames", "9"]);
    let (in_it, why) = frames(&found, &library);
    assert_eq!(names(&in_it), [None, None], "{found}");
    assert!(why.is_some_and(|why| why.contains("was changed since: its build id was")), "{why:?}");
    assert!(
        in_it.iter().all(|frame| frame["address"].as_u64().is_some_and(|address| address > 0)),
        "{found}"
    );

    fs::remove_file(&library).expect("it was there");
    let found = shown(&recording, &["--frames", "9"]);
    let (_, why) = frames(&found, &library);
    assert!(why.is_some_and(|why| why.contains("cannot be opened")), "{why:?}");
}

#[test]
fn what_is_stripped_has_exported_names_only() {
    let folder = folder("stripped");
    let library = folder.join("libthrough.so");
    let Some(()) = compile(&folder, &library, &["-DPADDING=1", "-Wl,--build-id", "-s"]) else { return };
    let recording = record(&folder, &library);
    let found = shown(&recording, &["--frames", "9"]);
    let (in_it, why) = frames(&found, &library);
    assert_eq!(names(&in_it), [None, Some("exported_function")], "{found}");
    assert!(why.is_some_and(|why| why.contains("no symbols")), "{why:?}");
    let output = super::bufadvise("show", &[&recording], &["--frames", "9"]);
    let text = super::printed(&output);
    assert!(text.contains("libthrough.so+0x") && text.contains("no symbols for some"), "{text}");
}

/// Without a build id the time has to do.
#[test]
fn a_changed_object_without_a_build_id_is_told() {
    let folder = folder("no-id");
    let library = folder.join("libthrough.so");
    let none = "-Wl,--build-id=none";
    let Some(()) = compile(&folder, &library, &["-DPADDING=1", none]) else { return };
    let recording = record(&folder, &library);
    let written = |distance: i64| {
        let by = Duration::from_secs(distance.unsigned_abs());
        let now = SystemTime::now();
        let file = File::options().write(true).open(&library).expect("the library");
        file.set_modified(if distance < 0 { now - by } else { now + by }).expect("a time");
    };
    let reason = || {
        let found = shown(&recording, &["--frames", "9"]);
        let (in_it, why) = frames(&found, &library);
        assert_eq!(names(&in_it) == BOTH, why.is_none(), "{found}");
        why.map(str::to_owned)
    };
    written(-100);
    assert_eq!(reason(), None);
    written(100);
    assert!(reason().is_some_and(|why| why.contains("newer than the recording")));
}

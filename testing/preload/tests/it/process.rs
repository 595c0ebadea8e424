//! What a process does that is recorded: it ends, starts others, is restricted, has small stacks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use buftrace::{Ending, Profile};

use crate::{Folder, has, library, recorded};

/// Builds a program in C, or a library; `None` where there is no compiler.
fn build(folder: &Folder, name: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
    if !has("cc") {
        return None;
    }
    let (file, built) = (folder.0.join(format!("{name}.c")), folder.0.join(name));
    fs::write(&file, format!("#define _GNU_SOURCE\n{source}")).unwrap();
    let mut command = Command::new("cc");
    command.args(["-O0", "-w", "-pthread", "-o"]).arg(&built).arg(&file).args(options).arg("-ldl");
    assert!(command.status().unwrap().success());
    Some(built)
}

fn count(profile: &Profile, bytes: u64) -> usize {
    profile.objects().iter().filter(|object| object.bytes == bytes).count()
}

/// The one recording of a program that ended well; `None` where there is no compiler.
pub(crate) fn whole(name: &str, source: &str) -> Option<Profile> {
    until(name, source, Ending::Stopped)
}

fn until(name: &str, source: &str, ending: Ending) -> Option<Profile> {
    let folder = Folder::new(name);
    let program = build(&folder, "program", source, &[])?;
    let mut command = recorded(program.to_str().unwrap(), &folder.0.join("out.heap"), "exact,min=1000");
    let status = command.status().unwrap();
    assert!(status.success(), "{status}");
    let mut profiles = folder.profiles();
    assert_eq!(profiles.len(), 1, "{:?}", profiles.iter().map(Profile::info).collect::<Vec<_>>());
    let profile = profiles.remove(0);
    assert_eq!((profile.ending(), profile.lost()), (ending, 0));
    Some(profile)
}

#[test]
fn unloaded_library_is_not_called_when_threads_end() {
    const SOURCE: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *library;
static pthread_barrier_t barrier;
static void *work(void *unused) {
    void *(*allocate)(size_t) = dlsym(library, "malloc");
    void (*release)(void *) = dlsym(library, "free");
    for (int n = 0; n < 100; n++) release(allocate(5000));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}
int main(int count, char **arguments) {
    pthread_t thread;
    library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return 2;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, work, NULL);
    pthread_barrier_wait(&barrier);
    dlclose(library);
    if (dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD)) return 3;
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    int status = 0;
    if (fork() == 0) exit(0);
    wait(&status);
    return status;
}"#;
    let folder = Folder::new("unloaded");
    let Some(program) = build(&folder, "program", SOURCE, &[]) else { return };
    let mut command = recorded(program.to_str().unwrap(), &folder.0.join("out.heap"), "exact,min=1000");
    let status = command.env_remove("LD_PRELOAD").arg(library()).status().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(folder.profiles().iter().map(|profile| count(profile, 5000)).sum::<usize>(), 100);
}

#[test]
fn malloc_is_no_cancellation_point() {
    let source = r#"
#include <pthread.h>
#include <stdlib.h>
static volatile int cancelled, done;
static void *work(void *unused) {
    while (!cancelled) {}
    for (int n = 0; n < 50000; n++) free(malloc(5000));
    done = 1;
    pthread_testcancel();
    return NULL;
}
int main(void) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, work, NULL);
    pthread_cancel(thread);
    cancelled = 1;
    pthread_join(thread, &result);
    return done ? result != PTHREAD_CANCELED : 3;
}"#;
    let Some(profile) = whole("cancelled", source) else { return };
    assert_eq!(count(&profile, 5000), 50_000);
}

#[test]
fn exits_without_handlers_keep_the_recording() {
    for call in ["_exit(0)", "_Exit(0)", "quick_exit(0)"] {
        let source = format!(
            "#include <stdlib.h>\n#include <unistd.h>\nint main(void) {{ free(malloc(5000)); {call}; }}"
        );
        let name = call.split('(').next().unwrap();
        let Some(profile) = whole(name, &source) else { return };
        assert_eq!(count(&profile, 5000), 1, "{call}");
    }
}

#[test]
fn forked_children_do_not_record() {
    for (name, fork, end) in [("fork", "fork", "exit"), ("vfork", "vfork", "_exit")] {
        let source = format!(
            r#"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {{
    for (int n = 0; n < 100; n++) {{
        free(malloc(5000));
        pid_t child = {fork}();
        if (child == 0) {{
            for (int n = 0; n < 1000; n++) free(malloc(6000));
            {end}(0);
        }}
        int status;
        if (waitpid(child, &status, 0) != child || status) return 2;
    }}
    return 0;
}}"#
        );
        let Some(profile) = whole(name, &source) else { return };
        assert_eq!((count(&profile, 5000), count(&profile, 6000)), (100, 0), "{name}");
    }
}

/// `bash` has a `getenv`, `setenv` and `unsetenv` for its own variables.
#[test]
fn program_with_its_own_unsetenv_starts_its_children_without_the_recorder() {
    const SOURCE: &str = r#"
#include <string.h>
extern char **environ;
int setenv(const char *name, const char *value, int replaces) { return 0; }
int unsetenv(const char *name) { return 0; }
int main(void) {
    for (char **entry = environ; *entry; entry++)
        if (!strncmp(*entry, "LD_PRELOAD=", 11) || !strncmp(*entry, "BUFTRACE", 8)) return 2;
    return 0;
}"#;
    whole("own-unsetenv", SOURCE);
}

/// What is in the environment besides is left as it is.
#[test]
fn children_get_an_environment_without_the_recorder() {
    let Some(libm) =
        ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"]
            .into_iter()
            .find(|path| Path::new(path).exists())
    else {
        return;
    };
    let printed = |preload: &dyn Fn(&str) -> String| {
        let folder = Folder::new("environment");
        let mut command = recorded("sh", &folder.0.join("out.heap"), "exact");
        let own = crate::preloaded();
        command.env("LD_PRELOAD", preload(&own)).args(["-c", "env; echo; /bin/true"]);
        let Output { status, stdout, .. } = command.output().unwrap();
        assert!(status.success());
        assert_eq!(folder.profiles().len(), 1, "one process is recorded");
        String::from_utf8(stdout).unwrap()
    };
    for preload in [&(|own: &str| own.to_owned()) as &dyn Fn(&str) -> String, &|own| format!("{own}:{libm}")]
    {
        let text = printed(preload);
        assert!(!text.contains("BUFTRACE") && !text.contains("/fd/"), "{text}");
        let kept = preload("").contains(libm);
        assert_eq!(text.contains(&format!("LD_PRELOAD={libm}\n")), kept, "{text}");
    }
}

/// Strict mode kills a program at any call but `read`, `write`, and the end of a thread.
#[test]
fn restricted_programs_are_left_alone() {
    for restrict in ["prctl(PR_SET_SECCOMP, 1)", "syscall(SYS_seccomp, 0, 0, 0)"] {
        let source = format!(
            r#"
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {{
    free(malloc(5000));
    if ({restrict}) return 2;
    for (int n = 0; n < 20000; n++) free(malloc(5000));
    syscall(SYS_exit, 0);
}}"#
        );
        // Its requests behind that are not recorded.
        let Some(profile) = until("seccomp", &source, Ending::Open) else { return };
        assert_eq!(count(&profile, 5000), 1, "{restrict}");
    }
}

/// A filter that kills at `getpid` does not kill a program, or its child, that ends.
#[test]
fn restricted_programs_end() {
    for (name, fork, ending) in [("filter", "0", Ending::Open), ("child", "fork()", Ending::Stopped)] {
        let source = format!(
            r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {{
    struct sock_filter filter[] = {{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    }};
    struct sock_fprog program = {{4, filter}};
    int status;
    free(malloc(5000));
    if ({fork}) {{ wait(&status); return status; }}
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 2;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 3;
    free(malloc(5000));
    return 0;
}}"#
        );
        let Some(profile) = until(name, &source, ending) else { return };
        assert_eq!(count(&profile, 5000), 1, "{name}");
    }
}

#[test]
fn stacks_of_8_kib_are_enough() {
    let source = r#"
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
static ucontext_t one, other;
static void work(void) {
    for (int n = 0; n < 20000; n++) free(realloc(malloc(5000), 6000));
}
int main(void) {
    char *memory = mmap(NULL, 3 << 12, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mprotect(memory + (1 << 12), 2 << 12, PROT_READ | PROT_WRITE)) return 2;
    getcontext(&other);
    other.uc_stack.ss_sp = memory + (1 << 12);
    other.uc_stack.ss_size = 2 << 12;
    other.uc_link = &one;
    makecontext(&other, work, 0);
    swapcontext(&one, &other);
    return 0;
}"#;
    let Some(profile) = whole("stack", source) else { return };
    assert_eq!(count(&profile, 5000), 20_000);
}

/// A library that requests memory, and its name.
fn plugin(folder: &Folder, name: &str) -> Option<PathBuf> {
    let source = format!(
        "#include <stdlib.h>\n__attribute__((noinline)) void *{name}(void) {{ void *m = malloc(7000); __asm__ volatile(\"\"); return m; }}"
    );
    build(folder, name, &source, &["-shared", "-fPIC"])
}

/// The file of the code that made each request of 7000 bytes.
fn modules(profile: &Profile) -> Vec<String> {
    let objects = profile.objects().iter().filter(|object| object.bytes == 7000);
    let module = |stack: u32| {
        let name = |address: &u64| {
            profile
                .module_of(stack, *address)
                .map_or("unknown", |module| module.path.rsplit('/').next().unwrap())
        };
        // Without optimisation there are frames of the library that records.
        profile.stack(stack).iter().map(name).find(|name| *name != "libbufpreload.so").expect("a frame")
    };
    objects.map(|object| module(object.stack).to_owned()).collect()
}

#[test]
fn code_is_known_whenever_it_is_loaded() {
    const SOURCE: &str = r#"
#include <dlfcn.h>
#include <stdlib.h>
int main(int count, char **arguments) {
    for (int n = 1; n + 1 < count; n += 2) {
        void *library = dlopen(arguments[n], RTLD_NOW);
        void *(*call)(void) = dlsym(library, arguments[n + 1]);
        free(call());
        dlclose(library);
    }
    return 0;
}"#;
    let folder = Folder::new("plugins");
    let Some(program) = build(&folder, "program", SOURCE, &[]) else { return };
    let (one, two) = (plugin(&folder, "one").unwrap(), plugin(&folder, "two").unwrap());
    let mut command = recorded(program.to_str().unwrap(), &folder.0.join("out.heap"), "exact,min=1000");
    command.arg(&one).arg("one").arg(&two).arg("two").arg(&one).arg("one");
    assert!(command.status().unwrap().success());
    assert_eq!(modules(&folder.profiles()[0]), ["one", "two", "one"]);
}

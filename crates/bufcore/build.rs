//! Says whether the compiler is a nightly one. Its unstable trait `Allocator` is what `allocator-api2`
//! 0.2 has in place of its own, if some crate of the program switches the feature `nightly` of that
//! crate on. No source can see whether one does; on a nightly compiler both traits are allowed.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let Some(compiler) = env::var_os("RUSTC") else { return };
    if env::var_os("CARGO_FEATURE_ALLOCATOR_API2_0_2").is_none() {
        return;
    }
    let Ok(output) = Command::new(compiler).arg("--version").output() else { return };
    let version = String::from_utf8_lossy(&output.stdout);
    if ["-nightly", "-dev"].iter().any(|channel| version.contains(channel)) {
        println!("cargo::rustc-cfg=nightly_compiler");
    }
}

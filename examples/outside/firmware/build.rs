//! Tells the linker where the vectors, the code and the memory are.

fn main() {
    println!("cargo::rustc-link-arg=-Tlink.x");
}

//! Prints how a driver reaches the kernel on this machine, and what the system refused.

#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a program of the standard library's: nothing here is built without it"
)]

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use bufuring::bufcore::{HugePages, MapOptions};
    use bufuring::{Arena, Driver};

    let plain = MapOptions::new().populate(true);
    let wanted =
        [plain, plain.huge_pages(HugePages::Advise), plain.huge_pages(HugePages::Require).lock(true)];
    for options in wanted {
        let arena = Arena::mapped(16 << 20, options)?;
        let driver = Driver::new(&arena);
        println!("{options}: mapped as {}, {}", arena.granted(), driver.mode());
        if let Some(refused) = arena.refused() {
            println!("    {refused}");
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("io_uring is Linux' own");
}

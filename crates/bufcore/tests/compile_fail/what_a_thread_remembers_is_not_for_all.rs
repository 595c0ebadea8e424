use core::ptr::NonNull;

use bufcore::strategy::threads;

fn main() {
    threads::remember(1, NonNull::dangling());
    let _ = threads::remove(1);
}

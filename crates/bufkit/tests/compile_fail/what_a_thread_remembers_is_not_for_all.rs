use core::ptr::NonNull;

use bufkit::thread_cache;

fn main() {
    thread_cache::set_fast(1, NonNull::dangling());
    let _ = thread_cache::remove(1);
}

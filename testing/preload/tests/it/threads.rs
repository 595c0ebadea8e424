//! A program of many threads, which are unknown to the language of this library.

use crate::process::whole;

const SOURCE: &str = r#"
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Each thread frees what the one before it has left, and leaves something. */
static void *left;

static void *work(void *argument) {
    (void)argument;
    void *memory;
    for (int n = 0; n < 500; n++) {
        free(malloc(1111));
        char *zero = calloc(3, 1000);
        for (int i = 0; i < 3000; i++)
            if (zero[i]) abort();
        zero[7] = 1;
        zero = realloc(zero, 70000);
        if (!zero || zero[7] != 1 || malloc_usable_size(zero) < 70000) abort();
        free(zero);
        if (posix_memalign(&memory, 4096, 2222) || (uintptr_t)memory % 4096) abort();
        free(memory);
        memory = aligned_alloc(64, 6400);
        if ((uintptr_t)memory % 64) abort();
        free(memory);
        free(memalign(256, 2560));
    }
    errno = 77;
    free(malloc(1111));
    if (errno != 77) abort();
    if (realloc(malloc(3333), 0) != NULL) abort();
    memory = left;
    left = malloc(4444);
    free(memory);
    return NULL;
}

int main(void) {
    /* More threads than are there at once: their numbers are used again. */
    for (int n = 0; n < 50; n++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL)) abort();
    }
    return 0;
}
"#;

#[test]
fn threads_end_and_functions_of_all_kinds_are_counted() {
    let Some(profile) = whole("threads", SOURCE) else { return };
    let count = |bytes: u64, zeroed: bool| {
        let objects =
            profile.objects().iter().filter(|object| object.bytes == bytes && object.zeroed == zeroed);
        let out = objects.clone().filter(|object| object.released.is_none()).count();
        let grown = objects.clone().filter(|object| object.largest == 70_000).count();
        (objects.count(), out, grown)
    };
    let turns = 50 * 500;
    assert_eq!(count(1111, false), (turns + 50, 0, 0));
    assert_eq!(count(3000, true), (turns, 0, turns));
    assert_eq!(count(2222, false), (turns, 0, 0));
    assert_eq!(count(6400, false), (turns, 0, 0));
    assert_eq!(count(2560, false), (turns, 0, 0));
    assert_eq!(count(3333, false), (50, 0, 0));
    assert_eq!(count(4444, false), (50, 1, 0));
    let threads = profile.objects().iter().map(|object| object.thread).max().unwrap();
    assert!(threads <= 2, "{threads} numbers");
}

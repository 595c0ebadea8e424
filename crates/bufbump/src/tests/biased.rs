//! Models of the biased lock: its owner, claims, its end.

use loom::sync::Arc;
use loom::thread;

use crate::cache::BiasedLock;

fn owned(is_biased: bool) -> Arc<BiasedLock<usize>> {
    let lock = BiasedLock::new(0, is_biased);
    assert!(lock.adopt() && !lock.adopt(), "one owner");
    Arc::new(lock)
}

fn add(lock: &BiasedLock<usize>) -> usize {
    usize::from(lock.enter(|value| *value += 1).is_some())
}

fn claim(lock: &BiasedLock<usize>) -> usize {
    usize::from(lock.claim(|value| *value += 1).is_some())
}

/// The owner always has the value, and nobody has it at the same time.
fn against_a_claim(is_biased: bool, before: fn(&BiasedLock<usize>)) {
    loom::model(move || {
        let lock = owned(is_biased);
        let theirs = Arc::clone(&lock);
        let other = thread::spawn(move || {
            before(&theirs);
            claim(&theirs) + claim(&theirs)
        });
        let own = add(&lock) + add(&lock);
        let claims = other.join().expect("no panic");
        assert_eq!(own, 2, "a handle keeps it open");
        assert_eq!(lock.enter(|value| *value), Some(own + claims));
        assert_eq!(claim(&lock), 1, "nobody is at work");
    });
}

#[test]
fn loom_owner_against_claims() {
    against_a_claim(true, |_| {});
}

#[test]
fn loom_owner_without_bias_against_claims() {
    against_a_claim(false, |_| {});
}

/// The owner is told to take the mutex, at any moment.
#[test]
fn loom_owner_that_learns_of_the_refusal() {
    against_a_claim(true, BiasedLock::refuse);
}

#[test]
fn loom_two_claims() {
    loom::model(|| {
        let lock = owned(true);
        let others = [(), ()].map(|()| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || claim(&lock))
        });
        let own = add(&lock);
        let claims: usize = others.into_iter().map(|other| other.join().expect("no panic")).sum();
        assert_eq!(lock.enter(|value| *value), Some(own + claims));
    });
}

/// The owner leaves, and another thread becomes it, beside a claim.
#[test]
fn loom_owners_one_after_the_other() {
    loom::model(|| {
        let lock = owned(true);
        let (next, third) = (Arc::clone(&lock), Arc::clone(&lock));
        let next = thread::spawn(move || if next.adopt() { add(&next) } else { 0 });
        let claims = thread::spawn(move || claim(&third));
        let own = add(&lock);
        lock.leave();
        let all = own + next.join().expect("no panic") + claims.join().expect("no panic");
        let found =
            if lock.adopt() { lock.enter(|value| *value) } else { lock.enter_to_take(|value| Some(*value)) };
        assert_eq!(found, Some(all));
    });
}

/// What the owner puts in, the end takes, or the owner finds the lock closed.
fn against_the_end(is_biased: bool, before: fn(&BiasedLock<usize>)) {
    loom::model(move || {
        let lock = owned(is_biased);
        let theirs = Arc::clone(&lock);
        let end = thread::spawn(move || {
            before(&theirs);
            theirs.close();
            bufkit::sync::fences::heavy(false);
            theirs.empty_closed(true, core::mem::take).unwrap_or(0)
        });
        let put = add(&lock);
        bufkit::sync::fences::light();
        let found = if lock.is_closed() { lock.enter_to_take(core::mem::take) } else { 0 };
        let went = end.join().expect("no panic");
        assert_eq!(found + went, put, "it is lost, or has two");
        assert_eq!((add(&lock), claim(&lock)), (0, 0), "used after the end");
    });
}

#[test]
fn loom_nothing_is_kept_after_the_end() {
    against_the_end(true, |_| {});
}

#[test]
fn loom_nothing_is_kept_after_the_end_without_bias() {
    against_the_end(false, |_| {});
    against_the_end(true, BiasedLock::refuse);
}

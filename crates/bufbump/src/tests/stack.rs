//! Models of the stacks, for every interleaving that loom finds: elements with a `Shadow` that
//! their owners write.
//!
//! With the known defect `aba` one of these fails, which is noted there.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::NonNull;

use loom::sync::Arc;
use loom::thread;
use testkit::models::Shadow;

use crate::stack::{StackEntry, StackId, StackLink, Stacks};

#[derive(Default)]
struct Item {
    stack_link: StackLink<Item>,
    shadow: Shadow,
}

// SAFETY: one field.
unsafe impl StackEntry for Item {
    fn stack_link(&self) -> &StackLink<Self> {
        &self.stack_link
    }
}

/// Two stacks, and elements that live as long.
struct Model {
    stacks: Stacks<Item>,
    items: Vec<NonNull<Item>>,
}

// SAFETY: what is shared is made for it, and that is what the models are about.
unsafe impl Send for Model {}
// SAFETY: likewise.
unsafe impl Sync for Model {}

impl Model {
    /// `count` elements, all on the first stack, the last one on top.
    fn new(count: usize) -> Arc<Self> {
        let items = (0..count).map(|_| NonNull::from(Box::leak(Box::<Item>::default()))).collect();
        let model = Self { stacks: Stacks::new(), items };
        for &item in &model.items {
            model.push(StackId::First, item);
        }
        Arc::new(model)
    }

    fn pop(&self, which: StackId) -> Option<NonNull<Item>> {
        // SAFETY: never closed, and elements live as long as the model.
        let item = unsafe { self.stacks.pop(which) }?;
        // Its owner has it alone: loom reports it otherwise.
        // SAFETY: as above.
        unsafe { item.as_ref() }.shadow.write();
        Some(item)
    }

    fn push(&self, which: StackId, item: NonNull<Item>) {
        // SAFETY: elements live as long as the model, and this one was popped, or is new.
        unsafe { item.as_ref() }.shadow.write();
        // SAFETY: likewise.
        assert!(unsafe { self.stacks.push(which, item) });
    }

    /// All that is on a stack, when nobody else is at work.
    fn drain(&self, which: StackId) -> Vec<NonNull<Item>> {
        core::iter::from_fn(|| self.pop(which)).collect()
    }

    /// Asserts that each element is on one of the stacks, once, or in `held`.
    fn check(&self, held: &[Option<NonNull<Item>>]) {
        let mut found = self.drain(StackId::First);
        found.extend(self.drain(StackId::Second));
        found.extend(held.iter().flatten());
        assert_eq!(found.len(), self.items.len(), "an element is lost, or there twice");
        assert!(self.items.iter().all(|item| found.contains(item)), "an element is there twice");
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        for item in &self.items {
            // SAFETY: made by `Box::leak`, and nobody uses it any more.
            drop(unsafe { Box::from_raw(item.as_ptr()) });
        }
    }
}

/// One thread pops while another pops two and puts the first back: the top is the same again, what
/// is below is not. Fails with `aba`.
#[test]
fn loom_an_element_that_comes_back() {
    loom::model(|| {
        let model = Model::new(2);
        let other = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                let first = model.pop(StackId::First);
                let second = model.pop(StackId::First);
                if let Some(first) = first {
                    model.push(StackId::First, first);
                }
                second.map(|item| item.as_ptr().expose_provenance())
            })
        };
        let mine = model.pop(StackId::First);
        let theirs = other.join().unwrap();
        let theirs = theirs.and_then(|at| NonNull::new(core::ptr::with_exposed_provenance_mut(at)));
        model.check(&[mine, theirs]);
    });
}

/// One thread takes what is there, makes an element and puts that there, while another looks: it
/// sees the new element as it was made.
#[test]
fn loom_an_element_that_is_new() {
    loom::model(|| {
        let model = Model::new(1);
        let other = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                let taken = model.pop(StackId::First);
                model.push(StackId::First, NonNull::from(Box::leak(Box::<Item>::default())));
                taken.map(|item| item.as_ptr().expose_provenance())
            })
        };
        let mine = model.pop(StackId::First);
        let theirs = other.join().unwrap();
        let theirs = theirs.and_then(|at| NonNull::new(core::ptr::with_exposed_provenance_mut(at)));
        let mut found = model.drain(StackId::First);
        found.extend(mine.into_iter().chain(theirs));
        assert_eq!(found.len(), 2, "an element is lost, or there twice");
        for new in found.into_iter().filter(|item| !model.items.contains(item)) {
            // SAFETY: made by `Box::leak` above, and taken by one of the threads, or here.
            drop(unsafe { Box::from_raw(new.as_ptr()) });
        }
    });
}

/// A pop hides no element from another: where there are two, two threads get one each.
#[test]
fn loom_a_pop_hides_no_other() {
    loom::model(|| {
        let model = Model::new(2);
        let other = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.pop(StackId::First).is_some())
        };
        assert!(model.pop(StackId::First).is_some(), "two are there");
        assert!(other.join().unwrap(), "two are there");
    });
}

/// Elements go from one stack to the other while threads look at them: a pop that is last to look
/// puts one on the stack where it is wanted.
#[test]
fn loom_from_one_stack_to_the_other() {
    loom::model(|| {
        let model = Model::new(1);
        let threads = [(); 2].map(|()| {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                if let Some(item) = model.pop(StackId::First) {
                    model.push(StackId::Second, item);
                } else if let Some(item) = model.pop(StackId::Second) {
                    model.push(StackId::First, item);
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        model.check(&[]);
    });
}

/// A push finds the stack changed while a pop, which knows the element from before, refers to it:
/// one of the two puts it there.
#[test]
fn loom_pushes_against_a_pop() {
    loom::model(|| {
        let model = Model::new(2);
        let threads = [(); 2].map(|()| {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                if let Some(item) = model.pop(StackId::First) {
                    model.push(StackId::First, item);
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        model.check(&[]);
    });
}

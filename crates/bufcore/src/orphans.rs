//! The list of memory that outlived its pool; see [`crate::strategy::orphans`].

#[cfg(not(feature = "alloc"))]
/// Frees what has nothing out any more. Without `alloc` there is nothing that could be freed.
pub fn sweep() {}

#[cfg(feature = "alloc")]
pub use list::{Methods, Orphan, adopt, adopt_counted, pending, release_late, sweep};

#[cfg(feature = "alloc")]
mod list {
    use core::cell::{Cell, UnsafeCell};
    use core::fmt;
    use core::ptr::{self, NonNull};

    use crate::sync::{AtomicPtr, AtomicUsize, Ordering};

    /// In the count of a block whose pool has not yet said how many of its buffers are out.
    const RUNNING: usize = 1 << (usize::BITS - 1);
    /// A late release that leaves 1, 2, 4, 8 or 16 others looks whether they have been released without being counted.
    const FEW: usize = 16;
    /// How many places the end of a pool looks at elsewhere, beside twice its own.
    const LOOKS: usize = 64;
    /// What a look at a block costs beside its places.
    const COST: usize = 8;

    /// The ordering of what counts releases.
    // ORDER: Release pairs with the Acquire of whoever settles the last one, which so sees all that the others did with the memory
    // and with the block. Acquire is for that one.
    const JOINED: Ordering = Ordering::AcqRel;

    type Link = Cell<*mut Orphan>;

    /// The head of a control block that can be left behind. First field of a `repr(C)` block.
    ///
    /// # Invariants
    ///
    /// - O1: `next` and `prev` are written by whoever adopts the block, until it has pushed it, and by the sweeper after that;
    ///   `finished` is written by whoever brought `out` to 0, and read by the sweeper after that.
    /// - O2: after the pool's end `out` is the number of buffers whose release was not counted. One step brings it to 0, and whoever
    ///   takes that step has the block alone, with the list. Until that step the block is valid.
    pub struct Orphan {
        /// Releases that are not counted yet, and `RUNNING` until the pool's end has counted the buffers (O2).
        out: AtomicUsize,
        /// The next block of the arrived ones, and then of the list.
        next: Link,
        /// The block in front of it on the list.
        prev: Link,
        /// The next of the finished blocks.
        finished: Link,
        /// Places that a look at the block has to visit. Written before the block arrives.
        places: Cell<usize>,
        kind: Kind,
    }

    /// How a block is found to have nothing out.
    #[derive(Clone, Copy)]
    enum Kind {
        /// By asking it.
        Asked(unsafe fn(NonNull<Orphan>) -> bool),
        /// By `out`.
        Counted(&'static Methods),
    }

    /// What the list asks of a block whose releases are counted.
    #[derive(Debug)]
    pub struct Methods {
        /// Looks for buffers that were released without being counted: by plain stores that saw their pool alive. Marks each, so that
        /// no other call finds it again, and returns how many it marked. Several threads may be in it with one block.
        ///
        /// Called with the address of a valid block, after its pool has marked what is out.
        pub settle: unsafe fn(NonNull<Orphan>) -> usize,
        /// Frees the block and its memory. Called once, when nobody else uses it. It neither panics nor keeps a link to it.
        pub free: unsafe fn(NonNull<Orphan>),
    }

    impl Orphan {
        /// A head whose block is freed by `try_free`, which finds out by itself whether anything is out.
        ///
        /// `try_free` is called with the block's address, by one thread at a time, after [`adopt`]. It returns `false` while
        /// anything is out; once it has returned `true` the block does not exist any more. It does not panic.
        #[must_use]
        pub fn new(try_free: unsafe fn(NonNull<Orphan>) -> bool) -> Self {
            Self::of(Kind::Asked(try_free))
        }

        /// A head whose late releases are counted by [`release_late`].
        #[must_use]
        pub fn counted(methods: &'static Methods) -> Self {
            Self::of(Kind::Counted(methods))
        }

        fn of(kind: Kind) -> Self {
            let link = || Cell::new(ptr::null_mut());
            Self {
                out: AtomicUsize::new(RUNNING),
                next: link(),
                prev: link(),
                finished: link(),
                places: Cell::new(1),
                kind,
            }
        }
    }

    impl fmt::Debug for Orphan {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Orphan").finish_non_exhaustive()
        }
    }

    /// Nobody is sweeping.
    const IDLE: usize = 0;
    /// A thread is the sweeper.
    const BUSY: usize = 1;
    /// Something has arrived or is finished.
    const ASKED: usize = 2;
    /// Somebody wants a look at each block.
    const SWEEP: usize = 4;

    /// `IDLE`, or `BUSY` and what the sweeper has been asked for since it last looked.
    #[cfg(not(any(loom, shuttle)))]
    static STATE: AtomicUsize = AtomicUsize::new(IDLE);
    /// The newest block that was adopted, and is not on the list yet.
    #[cfg(not(any(loom, shuttle)))]
    static ARRIVED: AtomicPtr<Orphan> = AtomicPtr::new(ptr::null_mut());
    /// The newest block whose `out` has come to 0, and that is not freed yet.
    #[cfg(not(any(loom, shuttle)))]
    static FINISHED: AtomicPtr<Orphan> = AtomicPtr::new(ptr::null_mut());
    #[cfg(not(any(loom, shuttle)))]
    static PENDING: AtomicUsize = AtomicUsize::new(0);
    #[cfg(not(any(loom, shuttle)))]
    static LIST: Sweepers = Sweepers(UnsafeCell::new(List::EMPTY));
    #[cfg(any(loom, shuttle))]
    crate::sync::checker::lazy_static! {
        static ref STATE: AtomicUsize = AtomicUsize::new(IDLE);
        static ref ARRIVED: AtomicPtr<Orphan> = AtomicPtr::new(ptr::null_mut());
        static ref FINISHED: AtomicPtr<Orphan> = AtomicPtr::new(ptr::null_mut());
        static ref PENDING: AtomicUsize = AtomicUsize::new(0);
        static ref LIST: Sweepers = Sweepers(UnsafeCell::new(List::EMPTY), #[cfg(loom)] loom::cell::UnsafeCell::new(()));
    }

    /// The list, which is the sweeper's: that of whoever made `STATE` `BUSY`. A model sees by the second cell whether there are two.
    struct Sweepers(UnsafeCell<List>, #[cfg(loom)] loom::cell::UnsafeCell<()>);

    // SAFETY: used by the sweeper only, of which there is one at a time, each after the one before (`request`); the links lead to blocks
    // that any thread may free.
    unsafe impl Sync for Sweepers {}
    // SAFETY: likewise.
    unsafe impl Send for Sweepers {}

    /// The blocks that wait, and where the looks that ends of pools pay for go on.
    struct List {
        first: *mut Orphan,
        /// The next block to be looked at; none: the first.
        cursor: *mut Orphan,
        /// What has been paid for and not been used.
        credit: usize,
    }

    impl List {
        const EMPTY: Self = Self { first: ptr::null_mut(), cursor: ptr::null_mut(), credit: 0 };

        /// Puts a block on the list, whose arrival pays for looks at those that are there already.
        ///
        /// # Safety
        ///
        /// `orphan` is valid, on no list, and leaves this one before it is freed.
        unsafe fn link(&mut self, orphan: NonNull<Orphan>) {
            // SAFETY: valid, and only its atomics may change beside what is the sweeper's (O1).
            let head = unsafe { orphan.as_ref() };
            head.prev.set(ptr::null_mut());
            head.next.set(self.first);
            if let Some(first) = NonNull::new(self.first) {
                // SAFETY: what is on the list is valid.
                unsafe { first.as_ref() }.prev.set(orphan.as_ptr());
                self.credit = self.credit.saturating_add(2 * head.places.get() + LOOKS);
            }
            if self.cursor.is_null() {
                // Its pool has just looked at the new one.
                self.cursor = self.first;
            }
            self.first = orphan.as_ptr();
        }

        /// Takes a block off the list, which may be gone: it was between `prev` and `next`.
        ///
        /// # Safety
        ///
        /// `orphan` was on the list up to now, with these neighbours.
        unsafe fn unlink(&mut self, orphan: NonNull<Orphan>, prev: *mut Orphan, next: *mut Orphan) {
            if self.cursor == orphan.as_ptr() {
                self.cursor = next;
            }
            match NonNull::new(prev) {
                // SAFETY: what is on the list is valid.
                Some(prev) => unsafe { prev.as_ref() }.next.set(next),
                None => self.first = next,
            }
            if let Some(next) = NonNull::new(next) {
                // SAFETY: likewise.
                unsafe { next.as_ref() }.prev.set(prev);
            }
        }
    }

    /// Takes over a block whose pool is gone, and frees it as soon as nothing of it is out.
    ///
    /// # Safety
    ///
    /// 1. `orphan` was made by [`Orphan::new`]; it is the first field of a block that its `try_free` knows how to free, and was not
    ///    adopted before.
    /// 2. Nobody but the outstanding leases uses the block from here on, and those only until their release.
    pub unsafe fn adopt(orphan: NonNull<Orphan>) {
        // SAFETY: the caller's promise: nobody but the list has it from here on.
        unsafe { arrive(orphan) };
        request(SWEEP);
    }

    /// Takes over a block whose pool is gone, and of which `out` buffers, in so many `places`, were marked as ones that outlive it.
    ///
    /// The memory is freed with the last buffer, unless that is released by a plain store that another thread had begun before the
    /// pool's end and completes after it: then by one of the next looks.
    ///
    /// Cost: a look at each place of the block, and at some of other blocks that wait: in the mean twice as many, and some dozens.
    ///
    /// # Safety
    ///
    /// 1. `orphan` was made by [`Orphan::counted`]; it is the first field of a block that its methods know how to use, and was not
    ///    adopted before.
    /// 2. `out` releases are to come, or have come: each is counted by one [`release_late`], which may have been called already, or
    ///    is found by one call of `settle`, but not both.
    /// 3. Nobody else uses the block from here on, and those only until their release.
    pub unsafe fn adopt_counted(orphan: NonNull<Orphan>, out: usize, places: usize) {
        // SAFETY: valid, and until the block arrives this field is the caller's.
        unsafe { orphan.as_ref() }.places.set(places);
        // Before the block can be finished, so that what is finished is on the list, or among the arrived ones.
        // SAFETY: the caller's promise. `RUNNING` is this thread's share: the block is valid up to the addition below (O2).
        unsafe { arrive(orphan) };
        // SAFETY: valid, as above.
        let settled = unsafe { settle(orphan) };
        // SAFETY: likewise.
        let count = unsafe { &(*orphan.as_ptr()).out };
        let added = (out - settled).wrapping_sub(RUNNING);
        if count.fetch_add(added, JOINED).wrapping_add(added) == 0 {
            // SAFETY: this was the step to 0.
            unsafe { finish(orphan) };
        }
        request(ASKED);
    }

    /// Counts the release of a buffer that was marked before its pool ended, and frees the block if it was the last one.
    ///
    /// Cost: one locked instruction. The last releases of a block, up to five, look at each of its places as well.
    ///
    /// # Safety
    ///
    /// `orphan` is that of the buffer's block, and was made by [`Orphan::counted`]. The buffer was one of those that were marked, was
    /// not counted before, and nobody uses it or the block for its sake after this call.
    pub unsafe fn release_late(orphan: NonNull<Orphan>) {
        // SAFETY: valid until this release is counted (O2).
        let count = unsafe { &(*orphan.as_ptr()).out };
        let mut settled = 1;
        // ORDER: Acquire, so that the look below sees what the others did before they were counted.
        let mut out = count.load(Ordering::Acquire);
        loop {
            let others = out.wrapping_sub(settled);
            if others.is_power_of_two() && others <= FEW {
                // These may all have been released without being counted, and then nobody would come any more.
                // SAFETY: valid, as above.
                settled += unsafe { settle(orphan) };
            }
            let left = out.wrapping_sub(settled);
            // ORDER: JOINED, see there. Acquire on failure as above. Behind a success the block may be gone.
            match count.compare_exchange_weak(out, left, JOINED, Ordering::Acquire) {
                Ok(_) if left == 0 => break,
                Ok(_) => return,
                Err(now) => out = now,
            }
        }
        // SAFETY: this was the step to 0.
        unsafe { finish(orphan) };
        request(ASKED);
    }

    /// Blocks that wait for their last buffer. A momentary number.
    #[must_use]
    pub fn pending() -> usize {
        // ORDER: Relaxed, a count for people only.
        PENDING.load(Ordering::Relaxed)
    }

    /// Looks at every block that waits, and frees what has nothing out any more.
    ///
    /// Never waits: when another thread is sweeping, it is told to look once more, and this call returns.
    pub fn sweep() {
        request(SWEEP);
    }

    /// Marks what was released without being counted, and returns how much that was.
    ///
    /// # Safety
    ///
    /// The block is valid during the call.
    unsafe fn settle(orphan: NonNull<Orphan>) -> usize {
        // SAFETY: `kind` is not written after the block was made.
        match unsafe { (*orphan.as_ptr()).kind } {
            // SAFETY: a valid block of these methods.
            Kind::Counted(methods) => unsafe { (methods.settle)(orphan) },
            Kind::Asked(_) => 0,
        }
    }

    /// Hands a block to the list.
    ///
    /// # Safety
    ///
    /// It is valid until the list frees it, and was not handed over before.
    unsafe fn arrive(orphan: NonNull<Orphan>) {
        // ORDER: Relaxed, a count for people only.
        PENDING.fetch_add(1, Ordering::Relaxed);
        // SAFETY: `next` is this thread's until the push (O1).
        unsafe { push(&ARRIVED, orphan, |orphan| &orphan.next) };
    }

    /// Hands a block whose `out` has come to 0 to the sweeper.
    ///
    /// # Safety
    ///
    /// It was adopted, and the caller took the step to 0.
    unsafe fn finish(orphan: NonNull<Orphan>) {
        // SAFETY: `finished` is this thread's until the push (O1); only the sweeper frees the block, and after that.
        unsafe { push(&FINISHED, orphan, |orphan| &orphan.finished) };
    }

    /// Puts a block on a stack of which all is taken at once.
    ///
    /// # Safety
    ///
    /// The block is valid until it is taken from the stack, and its `link` is the caller's.
    unsafe fn push(stack: &AtomicPtr<Orphan>, orphan: NonNull<Orphan>, link: fn(&Orphan) -> &Link) {
        // ORDER: Relaxed; the value is only compared, the exchange below does the publishing.
        let mut head = stack.load(Ordering::Relaxed);
        loop {
            // SAFETY: valid until the exchange succeeds, at the least; all that changes in a head allows to be shared.
            link(unsafe { orphan.as_ref() }).set(head);
            // ORDER: Release pairs with the Acquire swap in `serve`; a failure publishes nothing.
            match stack.compare_exchange_weak(head, orphan.as_ptr(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Asks the sweeper for `what`, or becomes the sweeper.
    fn request(what: usize) {
        // ORDER: AcqRel. Release pairs with the Acquire of the sweeper's swap below: what we stored before (a free slot, a block on a
        // stack) is seen by its next look. Acquire pairs with the Release of the last sweeper's exchange: the list is as it left it.
        if STATE.fetch_or(BUSY | what, Ordering::AcqRel) != IDLE {
            return;
        }
        loop {
            // ORDER: AcqRel, as above.
            let asked = STATE.swap(BUSY, Ordering::AcqRel);
            // SAFETY: this thread made the state `BUSY`, so it is the only sweeper, up to the exchange below.
            unsafe { serve(asked & SWEEP != 0) };
            // ORDER: Release pairs with the Acquire of the next sweeper. A failure reads nothing that is used.
            if STATE.compare_exchange(BUSY, IDLE, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }

    /// The list.
    ///
    /// # Safety
    ///
    /// The caller is the sweeper, and has no other borrow of it.
    unsafe fn list<'a>() -> &'a mut List {
        // SAFETY: the caller's promise.
        unsafe { &mut *LIST.0.get() }
    }

    /// Takes in what has arrived, frees what is finished, and looks at blocks that wait: at each, or at as many as were paid for.
    ///
    /// # Safety
    ///
    /// The caller is the sweeper.
    unsafe fn serve(all: bool) {
        #[cfg(loom)]
        LIST.1.with_mut(|_| ());
        // ORDER: Acquire, for both, pairs with the Release exchange in `push`. In this order: each block arrived before it was
        // finished, and who finished it has seen that, so a finished one that is found here is on the list or among the arrived.
        let mut finished = FINISHED.swap(ptr::null_mut(), Ordering::Acquire);
        let mut arrived = ARRIVED.swap(ptr::null_mut(), Ordering::Acquire);
        while let Some(orphan) = NonNull::new(arrived) {
            // SAFETY: a block on the stack is valid, and its links are the sweeper's now (O1).
            arrived = unsafe { orphan.as_ref() }.next.get();
            // SAFETY: the list is the caller's, and this borrow of it ends with the statement.
            let list = unsafe { list() };
            // SAFETY: just taken from the stack; it is taken off the list before or when it is freed.
            unsafe { list.link(orphan) };
        }
        while let Some(orphan) = NonNull::new(finished) {
            // SAFETY: a finished block is valid until the sweeper frees it, which is done below.
            finished = unsafe { orphan.as_ref() }.finished.get();
            // SAFETY: on the list, as said above, and nobody else's (O2).
            unsafe { free(orphan) };
        }
        let look_at = if all { look_at_all } else { look_at_some };
        // SAFETY: the caller is the sweeper.
        unsafe { look_at() }
    }

    /// Looks at each block that waits.
    ///
    /// # Safety
    ///
    /// The caller is the sweeper.
    unsafe fn look_at_all() {
        // SAFETY: the list is the caller's.
        let mut at = unsafe { list() }.first;
        while let Some(orphan) = NonNull::new(at) {
            // SAFETY: on the list, and so valid until the sweeper frees it.
            at = unsafe { orphan.as_ref() }.next.get();
            // SAFETY: likewise. Only the sweeper frees, so the next one stays.
            unsafe { look(orphan) };
        }
    }

    /// Looks at as many blocks as were paid for, from the cursor on, up to the end of the list.
    ///
    /// # Safety
    ///
    /// The caller is the sweeper.
    unsafe fn look_at_some() {
        // SAFETY: the list is the caller's, and no borrow of it lasts while a block's methods are called; here and below.
        let List { first, cursor, .. } = *unsafe { list() };
        let mut at = if cursor.is_null() { first } else { cursor };
        while let Some(orphan) = NonNull::new(at) {
            // SAFETY: as above.
            let List { cursor, credit, .. } = unsafe { list() };
            *cursor = at;
            // SAFETY: on the list, and so valid.
            let head = unsafe { orphan.as_ref() };
            let Some(left) = credit.checked_sub(head.places.get() + COST) else { return };
            *credit = left;
            at = head.next.get();
            *cursor = at;
            // SAFETY: on the list. Only the sweeper frees, so the next one stays.
            unsafe { look(orphan) };
        }
        // One round is enough for all of them.
        // SAFETY: as above.
        unsafe { list() }.credit = 0;
    }

    /// Frees a block if nothing of it is out.
    ///
    /// # Safety
    ///
    /// The caller is the sweeper, and the block is on the list.
    unsafe fn look(orphan: NonNull<Orphan>) {
        // SAFETY: on the list, and so valid.
        let Orphan { kind, out, prev, next, .. } = unsafe { orphan.as_ref() };
        match *kind {
            Kind::Counted(methods) => {
                // SAFETY: valid, and its pool is gone: blocks arrive after that.
                let settled = unsafe { (methods.settle)(orphan) };
                // ORDER: see `JOINED`.
                if settled != 0 && out.fetch_sub(settled, JOINED) == settled {
                    // SAFETY: this was the step to 0.
                    unsafe { free(orphan) };
                }
            }
            Kind::Asked(try_free) => {
                let (prev, next) = (prev.get(), next.get());
                // SAFETY: adopted, not freed, and the caller is the only sweeper.
                if unsafe { try_free(orphan) } {
                    // SAFETY: the list is the caller's.
                    let list = unsafe { list() };
                    // SAFETY: the block was between these two.
                    unsafe { list.unlink(orphan, prev, next) };
                    // ORDER: Relaxed, a count for people only.
                    PENDING.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Frees a block whose `out` has come to 0.
    ///
    /// # Safety
    ///
    /// The caller is the sweeper; the block is on the list, is a counted one, and is nobody else's.
    unsafe fn free(orphan: NonNull<Orphan>) {
        // SAFETY: on the list, and so valid.
        let Orphan { kind, prev, next, .. } = unsafe { orphan.as_ref() };
        let (kind, prev, next) = (*kind, prev.get(), next.get());
        // SAFETY: the list is the caller's, and this borrow ends before the block's methods are called.
        let list = unsafe { list() };
        // SAFETY: on the list, between these two.
        unsafe { list.unlink(orphan, prev, next) };
        // ORDER: Relaxed, a count for people only.
        PENDING.fetch_sub(1, Ordering::Relaxed);
        if let Kind::Counted(methods) = kind {
            // The allocator may call this module again: it finds a sweeper at work then, and returns.
            // SAFETY: nobody uses the block any more, and it is on no list.
            unsafe { (methods.free)(orphan) };
        }
    }
}

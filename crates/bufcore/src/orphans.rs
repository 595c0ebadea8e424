//! The list of memory that outlived its pool; see [`crate::strategy::orphans`].

#[cfg(not(feature = "alloc"))]
/// Frees what has nothing out any more. Without `alloc` there is nothing that could be freed.
pub fn sweep() {}

#[cfg(feature = "alloc")]
pub use list::{Orphan, adopt, pending, sweep};

#[cfg(feature = "alloc")]
mod list {
    use core::ptr::{self, NonNull};

    use crate::sync::{AtomicPtr, AtomicUsize, Ordering};

    /// The head of a control block that can be left behind. First field of a `repr(C)` block.
    #[derive(Debug)]
    pub struct Orphan {
        next: *mut Orphan,
        /// Frees the block and its memory if nothing is out, and says whether it did.
        try_free: unsafe fn(NonNull<Orphan>) -> bool,
    }

    impl Orphan {
        /// A head whose block is freed by `try_free`.
        ///
        /// `try_free` is called with the block's address, by one thread at a time, after [`adopt`]. It returns `false` while
        /// anything is out; once it has returned `true` the block does not exist any more. It neither panics nor calls
        /// [`sweep`].
        #[must_use]
        pub fn new(try_free: unsafe fn(NonNull<Orphan>) -> bool) -> Self {
            Self { next: ptr::null_mut(), try_free }
        }
    }

    #[cfg(not(loom))]
    static HEAD: AtomicPtr<Orphan> = AtomicPtr::new(ptr::null_mut());
    /// Sweeps asked for and not yet done; whoever raises it from zero does them.
    #[cfg(not(loom))]
    static REQUESTS: AtomicUsize = AtomicUsize::new(0);
    #[cfg(not(loom))]
    static PENDING: AtomicUsize = AtomicUsize::new(0);
    #[cfg(loom)]
    loom::lazy_static! {
        static ref HEAD: AtomicPtr<Orphan> = AtomicPtr::new(ptr::null_mut());
        static ref REQUESTS: AtomicUsize = AtomicUsize::new(0);
        static ref PENDING: AtomicUsize = AtomicUsize::new(0);
    }

    /// Takes over a block whose pool is gone, and frees it as soon as nothing of it is out.
    ///
    /// # Safety
    ///
    /// 1. `orphan` is the first field of a block that `try_free` knows how to free, and is not on the list.
    /// 2. Nobody but the outstanding leases uses the block from here on, and those only until their release.
    pub unsafe fn adopt(orphan: NonNull<Orphan>) {
        if cfg!(bufworks_broken = "forgetful") {
            return;
        }
        // ORDER: Relaxed, a count for people only.
        PENDING.fetch_add(1, Ordering::Relaxed);
        // SAFETY: `orphan` is valid and used by nobody else (rule 2), so the list of one is ours.
        unsafe { push(orphan, orphan) };
        sweep();
    }

    /// Blocks that wait for their last buffer. A momentary number.
    #[must_use]
    pub fn pending() -> usize {
        // ORDER: Relaxed, a count for people only.
        PENDING.load(Ordering::Relaxed)
    }

    /// Frees every block that has nothing out any more.
    ///
    /// Never waits: when another thread is sweeping, it is told to look once more, and this call returns.
    pub fn sweep() {
        // ORDER: AcqRel. Release pairs with the Acquire of the sweeper's exchange below: what we stored before (a free slot,
        // a block on the list) is seen by its next look. Acquire pairs with the Release of the last sweeper's exchange.
        if REQUESTS.fetch_add(1, Ordering::AcqRel) != 0 {
            return;
        }
        let mut answered = 1;
        loop {
            look_once();
            // ORDER: AcqRel, as above; Acquire on failure pairs with the Release of the request that made it fail.
            match REQUESTS.compare_exchange(answered, 0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(more) => answered = more,
            }
        }
    }

    /// Takes the whole list, frees what can be freed, and puts the rest back.
    fn look_once() {
        // ORDER: Acquire pairs with the Release exchange in `push`: the blocks' contents are seen.
        let mut at = HEAD.swap(ptr::null_mut(), Ordering::Acquire);
        let mut kept: Option<(NonNull<Orphan>, NonNull<Orphan>)> = None;
        while let Some(orphan) = NonNull::new(at) {
            // SAFETY: what is taken from the list is ours until we put it back, and it is valid until `try_free` succeeds.
            let Orphan { next, try_free } = unsafe { orphan.read() };
            at = next;
            // SAFETY: the block was adopted and we are the only sweeper that holds it.
            if unsafe { try_free(orphan) } {
                // ORDER: Relaxed, a count for people only.
                PENDING.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (first, last) = kept.unwrap_or((orphan, orphan));
            // SAFETY: still ours, still valid.
            unsafe {
                (*orphan.as_ptr()).next = if kept.is_some() { first.as_ptr() } else { ptr::null_mut() }
            };
            kept = Some((orphan, last));
        }
        if let Some((first, last)) = kept {
            // SAFETY: the chain `first ..= last` is ours.
            unsafe { push(first, last) };
        }
    }

    /// Puts the chain `first ..= last` on the list.
    ///
    /// # Safety
    ///
    /// The chain is valid and nobody else uses it.
    unsafe fn push(first: NonNull<Orphan>, last: NonNull<Orphan>) {
        // ORDER: Relaxed; the value is only compared, the exchange below does the publishing.
        let mut head = HEAD.load(Ordering::Relaxed);
        loop {
            // SAFETY: the chain is ours until the exchange succeeds.
            unsafe { (*last.as_ptr()).next = head };
            // ORDER: Release pairs with the Acquire swap in `look_once`; a failure publishes nothing.
            match HEAD.compare_exchange_weak(head, first.as_ptr(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

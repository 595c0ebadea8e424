//! The waits of all ends, which have an `End` in their field `end`: they differ in what they wait
//! for, and in what can go wrong.

/// The waits of threads.
macro_rules! waits {
    (
        $type:ident,
        until $what:literal,
        cost $cost:literal,
        example $example:literal,
        timeout $timeout:literal,
        errors $errors:literal
    ) => {
        impl $type {
            #[doc = concat!("Blocks until ", $what, ".")]
            #[doc = ""]
            #[doc = $cost]
            #[doc = ""]
            #[doc = "# Errors"]
            #[doc = ""]
            #[doc = $errors]
            #[doc = $example]
            pub fn wait(&mut self, n: usize) -> Result<(), $crate::WaitError> {
                self.end.wait(n, None)
            }

            /// Waits as [`wait`](Self::wait) does, for `timeout` at most.
            ///
            /// # Errors
            ///
            /// As [`wait`](Self::wait), and [`WaitError::TimedOut`](crate::WaitError::TimedOut).
            #[doc = $timeout]
            pub fn wait_timeout(
                &mut self,
                n: usize,
                timeout: core::time::Duration,
            ) -> Result<(), $crate::WaitError> {
                self.end.wait(n, std::time::Instant::now().checked_add(timeout))
            }
        }
    };
}

/// The waits of tasks.
macro_rules! task_waits {
    ($type:ident, example $example:literal, poll $poll:literal) => {
        impl $type {
            /// Waits as [`wait`](Self::wait) does, as a future for any executor. Dropping it loses
            /// nothing.
            ///
            /// After 128 completed operations of tasks on a thread, the next poll of each future
            /// returns `Pending` and wakes its own task. This ends when one of them is polled
            /// again, or after 32 such polls. A task with a quick peer lets other tasks run, in a
            /// `select!`, too.
            ///
            /// # Errors
            ///
            /// As [`wait`](Self::wait).
            #[doc = $example]
            pub async fn wait_async(&mut self, n: usize) -> Result<(), $crate::WaitError> {
                core::future::poll_fn(|cx| self.poll_wait(cx, n)).await
            }

            /// Waits as [`wait`](Self::wait) does, for tasks: the waker of the last call is woken
            /// when there is reason to look again. It lets other tasks run as
            /// [`wait_async`](Self::wait_async) does.
            ///
            /// # Errors
            ///
            /// As [`wait`](Self::wait).
            #[doc = $poll]
            pub fn poll_wait(
                &mut self,
                cx: &core::task::Context<'_>,
                n: usize,
            ) -> core::task::Poll<Result<(), $crate::WaitError>> {
                self.end.poll_task(n, cx)
            }
        }
    };
}

pub(crate) use {task_waits, waits};

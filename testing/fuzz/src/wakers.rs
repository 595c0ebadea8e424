//! Wakers that panic, let go of things and use pools, as the bytes of the program say.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use testkit::bytes::Bytes;
use testkit::hostile::{Baggage, locked, panic_on_purpose};
use testkit::wakers::{Event, hooked};

/// What a waker does, once, at its first event of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Panic,
    LetGo,
    Use,
    Trim,
}

/// An event of a waker, and what it does then.
pub(crate) type Plan = Option<(Event, Act)>;

/// What the wakers of a program have.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) baggage: Baggage,
    /// Uses a pool, or trims it.
    work: Arc<dyn Fn(Act) + Send + Sync>,
    /// From then on wakers wake, and nothing else.
    over: Arc<AtomicBool>,
}

impl World {
    /// Wakers that let go of what is in `baggage`, and call `work` to use a pool, or to trim it.
    pub(crate) fn new(baggage: Baggage, work: impl Fn(Act) + Send + Sync + 'static) -> Self {
        Self { baggage, work: Arc::new(work), over: Arc::default() }
    }

    /// From now on wakers wake, and nothing else.
    pub(crate) fn end(&self) {
        // ORDER: SeqCst, for ease.
        self.over.store(true, SeqCst);
    }

    /// A waker that sets `woken`, and does what is planned.
    pub(crate) fn waker(&self, woken: &Arc<AtomicBool>, planned: Plan) -> Waker {
        let (world, woken) = (self.clone(), Arc::clone(woken));
        let planned = Mutex::new(planned);
        hooked(move |event| {
            // ORDER: SeqCst, for ease, here and below: a test's switches.
            if event == Event::Wake {
                woken.store(true, SeqCst);
            }
            let act = {
                let mut planned = locked(&planned);
                planned.take_if(|planned| planned.0 == event)
            };
            // ORDER: SeqCst, as above.
            if let Some((_, act)) = act
                && !world.over.load(SeqCst)
            {
                world.act(act);
            }
        })
    }

    fn act(&self, act: Act) {
        match act {
            Act::Panic => panic_on_purpose(),
            Act::LetGo => {
                self.baggage.let_go();
                self.baggage.let_go();
            }
            Act::Use | Act::Trim => (self.work)(act),
        }
    }
}

/// What the next waker does.
pub(crate) fn plan(bytes: &mut Bytes<'_>) -> Plan {
    let event = match bytes.below(8) {
        0..=1 => Event::Wake,
        2 => Event::Drop,
        3 => Event::Clone,
        _ => return None,
    };
    Some((event, bytes.pick([Act::Panic, Act::LetGo, Act::Use, Act::Trim])))
}

//! Which buffers are told that somebody waits.

use super::Told;

/// How a place in a pool's memory is held.
///
/// ```
/// use bufcore::strategy::Holder;
///
/// let states = [Holder::Plain, Holder::Nobody, Holder::Watched];
/// let out = states.iter().filter(|&&holder| holder != Holder::Nobody).count();
/// assert_eq!(out, 2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// No buffer holds it.
    Nobody,
    /// The pool holds it itself, such as an open frame. It is not released while a request waits.
    Pool,
    /// A buffer holds it whose release is a plain store. If that has begun, it wakes nobody.
    Plain,
    /// A buffer holds it whose release sees whether it was told.
    Watched,
    /// A buffer holds it that was told.
    Told,
}

/// The places of a pool's memory in the order of their addresses, for one request that waits.
/// [`Teller`] decides which of them are told.
///
/// No unsafe code depends on what an implementor does. [`Teller`] has an example of more places.
///
/// ```
/// use std::cell::Cell;
///
/// use bufcore::strategy::{Holder, Teller, WaitingRow};
///
/// /// A pool that lends one buffer.
/// struct One(Cell<Holder>);
///
/// impl WaitingRow for One {
///     type Place = ();
///     fn first(&self) -> Option<()> {
///         Some(())
///     }
///     fn behind(&self, (): ()) -> Option<()> {
///         None
///     }
///     fn has_room(&self, (): (), (): ()) -> bool {
///         true
///     }
///     fn look(&self, (): ()) -> Holder {
///         self.0.get()
///     }
///     fn tell(&self, (): ()) -> Holder {
///         let is_out = self.0.get() != Holder::Nobody;
///         self.0.replace(if is_out { Holder::Told } else { Holder::Nobody })
///     }
/// }
///
/// let one = One(Cell::new(Holder::Plain));
/// assert_eq!(Teller::default().tell(&one, true).plain, 1);
/// assert_eq!(one.0.get(), Holder::Told);
/// ```
pub trait WaitingRow {
    /// Names a place.
    type Place: Copy;

    /// Returns the first place.
    fn first(&self) -> Option<Self::Place>;

    /// Returns the place behind another one.
    fn behind(&self, place: Self::Place) -> Option<Self::Place>;

    /// Returns whether the request could be served if all places from `first` to `last` were free,
    /// and all others were held. It says no more and no less than the pool's own search would find.
    fn has_room(&self, first: Self::Place, last: Self::Place) -> bool;

    /// Looks at how the place is held.
    fn look(&self, place: Self::Place) -> Holder;

    /// Tells the holder of the place, unless that is `Nobody`. It returns how the place was held
    /// before.
    fn tell(&self, place: Self::Place) -> Holder;
}

/// Decides which buffers a request tells that it waits, and keeps what that takes from one request
/// to the next. A pool has one.
///
/// A request can be served when all places of some window are free, which together have room for
/// it. So it tells one place of each window. When that one is released, the request looks again,
/// and tells another one, unless it is served.
///
/// Which place of a window is told is drawn at random. So the buffers that are left are half as
/// many on average when it is released, in whatever order they are. A request for the memory of `n`
/// buffers is woken about `log2(n)` times, and not `n` times.
///
/// Cost: a look at each place, and a locked instruction for each that is told.
///
/// ```
/// use std::cell::RefCell;
///
/// use bufcore::strategy::{Holder, Teller, WaitingRow};
///
/// /// A thousand places of a byte each.
/// struct Row {
///     places: RefCell<Vec<Holder>>,
///     bytes: usize,
/// }
///
/// impl WaitingRow for Row {
///     type Place = usize;
///     fn first(&self) -> Option<usize> {
///         Some(0)
///     }
///     fn behind(&self, place: usize) -> Option<usize> {
///         Some(place + 1).filter(|&next| next < self.places.borrow().len())
///     }
///     fn has_room(&self, first: usize, last: usize) -> bool {
///         last - first + 1 >= self.bytes
///     }
///     fn look(&self, place: usize) -> Holder {
///         self.places.borrow()[place]
///     }
///     fn tell(&self, place: usize) -> Holder {
///         std::mem::replace(&mut self.places.borrow_mut()[place], Holder::Told)
///     }
/// }
///
/// let mut teller = Teller::default();
/// let mut row = Row { places: vec![Holder::Watched; 1000].into(), bytes: 1000 };
/// assert_eq!(teller.tell(&row, true).out, 1); // it needs all of them, and so this one too
/// row.bytes = 1;
/// assert_eq!(teller.tell(&row, true).out, 1000); // each of them will do
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Teller {
    /// At most so many buffers were told that were handed out as plain ones, and may be out yet.
    plain: usize,
    /// Of the next draw.
    seed: u32,
}

impl Default for Teller {
    fn default() -> Self {
        Self { plain: 0, seed: 0x9E37_79B9 }
    }
}

/// Places that a request could have together. The walk over the row moves both ends of it.
struct Window<P> {
    first: P,
    /// How many places it has.
    places: usize,
    /// How many of the last ones of the row come behind the one that was told last.
    since: usize,
    /// Nobody holds any of them, except perhaps the last one.
    is_free: bool,
}

impl<P> Window<P> {
    fn new(first: P) -> Self {
        Self { first, places: 0, since: 0, is_free: false }
    }

    fn is_told(&self) -> bool {
        self.since < self.places
    }

    /// Notes how a place was held that was to be told, with `since` places behind it in the window.
    /// Returns whether somebody was told.
    fn note(&mut self, was: Holder, since: usize, told: &mut Told) -> bool {
        if was == Holder::Nobody {
            return false;
        }
        told.out += 1;
        told.plain += usize::from(was == Holder::Plain);
        self.since = since;
        self.is_free = false;
        true
    }
}

impl Teller {
    /// Tells one place of each window in which the request could be served. `is_first` says that
    /// nothing was told for this request before.
    pub fn tell<R: WaitingRow>(&mut self, row: &R, is_first: bool) -> Told {
        let (mut told, mut before) = (Told { out: 0, plain: 0 }, 0);
        let Some(first) = row.first() else { return told };
        let mut window = Window::new(first);
        let mut next = Some(first);
        while let Some(last) = next {
            next = row.behind(last);
            window.places += 1;
            window.since += 1;
            match row.look(last) {
                Holder::Pool => {
                    // No window reaches over it.
                    window = Window::new(next.unwrap_or(last));
                    continue;
                }
                Holder::Told if row.tell(last) != Holder::Nobody => {
                    before += 1;
                    told.out += 1;
                    window.since = 0;
                    window.is_free = false;
                }
                _ => {}
            }
            while window.places > 1
                && let Some(second) = row.behind(window.first)
                && row.has_room(second, last)
            {
                window.first = second;
                window.places -= 1;
            }
            if window.is_told() {
                continue;
            }
            if !row.has_room(window.first, last) {
                window.is_free = false;
            } else if window.is_free {
                window.note(row.tell(last), 0, &mut told);
            } else {
                self.tell_one(row, &mut window, &mut told);
            }
        }
        // Those of earlier requests were told for the first time before this one began.
        let old = self.plain.min(before);
        self.plain = old + told.plain;
        told.plain += if is_first { old } else { 0 };
        told
    }

    /// Tells one place of the window, whichever the draw says, or one behind it that is held.
    fn tell_one<R: WaitingRow>(&mut self, row: &R, window: &mut Window<R::Place>, told: &mut Told) {
        let drawn = self.draw(window.places);
        let (mut place, mut index) = (window.first, 0);
        for tried in 0..drawn + window.places {
            if tried >= drawn {
                let since = window.places - 1 - index;
                if window.note(row.tell(place), since, told) {
                    return;
                }
            }
            index += 1;
            match row.behind(place) {
                Some(behind) if index < window.places => place = behind,
                _ => (place, index) = (window.first, 0),
            }
        }
        // So the windows behind it are not looked through again.
        window.is_free = true;
    }

    /// Draws a number less than `limit`, by Marsaglia's xorshift.
    fn draw(&mut self, limit: usize) -> usize {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 17;
        self.seed ^= self.seed << 5;
        self.seed as usize % limit
    }
}

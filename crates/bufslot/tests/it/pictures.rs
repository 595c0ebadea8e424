//! The cases that the documentation of Stratum's `buffer_sv2` draws, step by step: which slots are
//! taken, and by whom. Where it says `ALLOC MODE`, this pool says `FALLBACK MODE`.

use std::collections::BTreeMap;

use bufcore::{Buf, BufferPool, HeapPool};
use bufslot::{SlotLease, SlotPool, Writer};
use testkit::append::Append;

type Lease = SlotLease<<HeapPool as BufferPool>::Lease>;

/// A pool of eight slots whose buffers have one-letter names.
struct Drawing {
    pool: SlotPool,
    named: BTreeMap<char, Buf<Lease>>,
    /// What has been drawn so far.
    lines: Vec<String>,
    bytes: usize,
}

impl Drawing {
    fn new(bytes: usize) -> Self {
        let pool = SlotPool::new(8 * bytes, 8).expect("settings are right");
        let mut drawing = Self { pool, named: BTreeMap::new(), lines: Vec::new(), bytes };
        drawing.draw();
        drawing
    }

    /// One line: the name of each slot's buffer, and the mode.
    fn draw(&mut self) {
        let mut slots = ['-'; 8];
        for (&name, buf) in &self.named {
            assert!(buf.iter().all(|&byte| byte == name as u8), "the bytes of {name} were changed");
            if let Some(slot) = self.pool.slot_of(buf) {
                assert_eq!(slots[slot], '-', "{name} is in the slot of another");
                slots[slot] = name;
            }
        }
        for (slot, &name) in slots.iter().enumerate() {
            assert_eq!(self.pool.is_taken(slot), name != '-', "slot {slot}");
        }
        self.lines.push(format!("{}  {}", String::from_iter(slots), self.pool.mode()));
    }

    fn take(&mut self, names: &str) {
        for name in names.chars() {
            let mut buf = self.pool.acquire(self.bytes).expect("the heap has room");
            buf.resize(self.bytes, name as u8).expect("it was asked for");
            self.named.insert(name, buf);
            self.draw();
        }
    }

    /// The same through frames, as a codec does it: a first byte, then the rest.
    fn frame(&mut self, names: &str) {
        for name in names.chars() {
            let mut writer = Writer::new(&mut self.pool);
            writer.append(1).expect("the heap has room").fill(name as u8);
            writer.append(self.bytes - 1).expect("the heap has room").fill(name as u8);
            let buf = writer.finish();
            self.named.insert(name, buf);
            self.draw();
        }
    }

    fn give_back(&mut self, names: &str) {
        for name in names.chars() {
            assert!(self.named.remove(&name).is_some(), "{name} is not there");
        }
    }
}

const FILLING: [&str; 9] = [
    "--------  BACK MODE",
    "1-------  BACK MODE",
    "12------  BACK MODE",
    "123-----  BACK MODE",
    "1234----  BACK MODE",
    "12345---  BACK MODE",
    "123456--  BACK MODE",
    "1234567-  BACK MODE",
    "12345678  BACK MODE",
];

/// Takes the named buffers, in one way or another.
type Take = fn(&mut Drawing, &str);

/// What a pool is asked with, and the size of each buffer.
fn ways() -> [(Take, usize); 4] {
    [(Drawing::take, 1), (Drawing::take, 100), (Drawing::frame, 2), (Drawing::frame, 100)]
}

#[test]
fn case_1_exhaustion() {
    for (take, bytes) in ways() {
        let mut drawing = Drawing::new(bytes);
        take(&mut drawing, "12345678");
        take(&mut drawing, "9a");
        let expected = [&FILLING[..], &["12345678  FALLBACK MODE"; 2]].concat();
        assert_eq!(drawing.lines, expected);
        assert!(drawing.named[&'9'].lease().is_fallback() && !drawing.named[&'8'].lease().is_fallback());
    }
}

#[test]
fn case_2_reset() {
    for (take, bytes) in ways() {
        let mut drawing = Drawing::new(bytes);
        take(&mut drawing, "12345678");
        drawing.give_back("12345678");
        drawing.draw();
        take(&mut drawing, "9a");
        let rest = ["--------  BACK MODE", "9-------  BACK MODE", "9a------  BACK MODE"];
        assert_eq!(drawing.lines, [&FILLING[..], &rest].concat());
    }
}

#[test]
fn case_3_back_front_back() {
    for (take, bytes) in ways() {
        let mut drawing = Drawing::new(bytes);
        take(&mut drawing, "12345678");
        drawing.give_back("12");
        drawing.draw();
        take(&mut drawing, "9a");
        drawing.give_back("78");
        drawing.draw();
        take(&mut drawing, "bc");
        let slots: Vec<&str> = drawing.lines[9..].iter().map(|line| &line[..8]).collect();
        assert_eq!(slots, ["--345678", "-9345678", "a9345678", "a93456--", "a93456b-", "a93456bc"]);
        // The drawing names a mode where it names a switch, and where it is full.
        assert_eq!(drawing.lines[..9], FILLING);
        assert_eq!(drawing.lines[10], "-9345678  FRONT MODE");
        assert_eq!(drawing.lines[11], "a9345678  FRONT MODE");
        assert_eq!(drawing.lines[13], "a93456b-  BACK MODE");
        assert_eq!(drawing.lines[14], "a93456bc  BACK MODE");
    }
}

/// The order in which the drawn buffers go back does not matter.
#[test]
fn case_3_in_other_orders() {
    for (take, bytes) in ways() {
        let mut drawing = Drawing::new(bytes);
        take(&mut drawing, "12345678");
        drawing.give_back("21");
        take(&mut drawing, "9a");
        drawing.give_back("87");
        take(&mut drawing, "bc");
        // Which of two free slots a buffer gets may differ; that nothing falls back may not.
        assert!(drawing.lines.iter().all(|line| !line.ends_with("FALLBACK MODE")), "{:#?}", drawing.lines);
        assert_eq!(drawing.named.len(), 8);
    }
}

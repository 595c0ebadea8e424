use core::cell::Cell;
use std::rc::Rc;

struct Shared(Rc<()>);
struct Counted(Cell<u32>);

unsafe impl bufcore::Lease for Shared {
    fn views(&self) -> Option<&bufcore::author::RefCount> {
        None
    }
}

unsafe impl bufcore::Lease for Counted {
    fn views(&self) -> Option<&bufcore::author::RefCount> {
        None
    }
}

fn main() {}

//! Bytes times seconds by call stack, as the folded lines that flamegraph tools read.

use std::collections::BTreeMap;

use buftrace::Profile;

use crate::names::{Frame, Stacks};

/// Returns one line for each stack: its frames, outermost first, and bytes times milliseconds. The
/// tools take whole numbers, and those of a short run are less than one in seconds.
pub(crate) fn folded(heap: &Profile, stacks: &Stacks) -> String {
    let program = heap.info().program.rsplit('/').next().unwrap_or_default();
    let mut held: BTreeMap<String, f64> = BTreeMap::new();
    for site in heap.sites() {
        *held.entry(line(program, stacks.frames(site.stack))).or_default() += site.byte_seconds * 1e3;
    }
    let some = held.iter().filter(|(_, value)| value.round() > 0.0);
    some.map(|(line, value)| format!("{line} {value:.0}\n")).collect()
}

/// Returns the names of a stack. The innermost frame has its line, which tells call sites of one
/// function apart.
fn line(program: &str, frames: &[impl AsRef<Frame>]) -> String {
    let outer = frames.iter().skip(1).rev().map(|frame| frame.as_ref().name());
    let names = outer.chain(frames.first().map(|frame| frame.as_ref().location()));
    let names = std::iter::once(program.to_owned()).chain(names);
    let plain = |name: String| name.replace(';', ":").replace(['\n', '\r'], " ");
    names.map(plain).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::names::tests::named;

    #[test]
    fn the_program_comes_first_and_the_call_site_last() {
        let frames = [Rc::new(named("b<c;\n d>", Some(7))), Rc::new(named("a", Some(3)))];
        assert_eq!(line("app", &frames), "app;a;b<c:  d> (src/main.rs:7)");
        assert_eq!(line("app", &[] as &[Rc<Frame>]), "app");
    }
}

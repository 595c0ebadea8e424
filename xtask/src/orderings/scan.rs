//! Finds the orders that atomic operations and fences name, by the tokens of a file.
//!
//! A constant that stands for an order, such as `bufcore`'s `RELEASE`, counts wherever an operation uses it, and not where it is
//! defined.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Result, ensure};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::rust_code::Code;

/// An order of an operation. `Relaxed` is none: nothing is weaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

/// The constants that stand for orders.
pub(super) type Constants = BTreeMap<String, Order>;

/// A place where an operation names an order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The function that it is in.
    pub(super) function: String,
    /// The operation with the last name of what it is called on, as `state.load`; for a fence its own name.
    pub(super) operation: String,
    pub(super) order: Order,
    /// Which order of the operation this is, when it has two.
    pub(super) is_failure: bool,
    /// The bytes that name the order.
    pub(super) at: Range<usize>,
    /// The bytes of the whole call, if it is a fence.
    pub(super) fence: Option<Range<usize>>,
}

impl Order {
    const ALL: [Self; 4] = [Self::Acquire, Self::Release, Self::AcqRel, Self::SeqCst];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Acquire => "Acquire",
            Self::Release => "Release",
            Self::AcqRel => "AcqRel",
            Self::SeqCst => "SeqCst",
        }
    }
}

impl Place {
    /// The orders that are next below this one. `Relaxed` for a fence means that there is none.
    pub(super) fn weaker(&self) -> &'static [&'static str] {
        let method = self.operation.rsplit('.').next().unwrap_or_default();
        match self.order {
            Order::Acquire | Order::Release => &["Relaxed"],
            Order::AcqRel => &["Acquire", "Release"],
            Order::SeqCst if method == "load" || self.is_failure => &["Acquire"],
            Order::SeqCst if method == "store" => &["Release"],
            Order::SeqCst => &["AcqRel"],
        }
    }
}

/// The constants of type `Ordering` that a file, which reads `text`, defines.
pub(super) fn constants(text: &str) -> Result<Constants> {
    let tokens = Code::of(text, false)?.tokens.into_iter().collect();
    let mut found = Constants::new();
    each_run(tokens, &mut |run| {
        for at in 0..run.len() {
            let rest: Vec<String> = run[at..].iter().take(9).map(word).collect();
            if let [keyword, name, _, kind, _, path, _, _, order] = &rest[..]
                && (keyword == "const" && kind == "Ordering" && path == "Ordering")
                && let Some(order) = Order::named(order)
            {
                found.insert(name.clone(), order);
            }
        }
    });
    Ok(found)
}

/// The places in a file, which reads `text`, that are not for tests.
pub(super) fn places(text: &str, constants: &Constants) -> Result<Vec<Place>> {
    let mut scan = Scan { constants, places: Vec::new() };
    scan.run(&Code::of(text, false)?.tokens, "", None);
    ensure!(scan.places.is_sorted_by_key(|place| place.at.start), "places out of order");
    Ok(scan.places)
}

/// Calls `f` with the tokens of each group, and of the file.
fn each_run(tokens: TokenStream, f: &mut impl FnMut(&[TokenTree])) {
    let run: Vec<_> = tokens.into_iter().collect();
    f(&run);
    for token in run {
        if let TokenTree::Group(group) = token {
            each_run(group.stream(), f);
        }
    }
}

fn word(token: &TokenTree) -> String {
    match token {
        TokenTree::Group(_) => String::new(),
        token => token.to_string(),
    }
}

/// A call, whose arguments are looked at.
struct Call {
    operation: String,
    /// Of the whole call, if it is a fence.
    fence: Option<Range<usize>>,
}

struct Scan<'a> {
    constants: &'a Constants,
    places: Vec<Place>,
}

impl Scan<'_> {
    /// Looks at the tokens of one group, in `function`. `call` is the call among whose arguments they are.
    fn run(&mut self, run: &[TokenTree], function: &str, call: Option<&Call>) {
        let mut inner = None;
        let mut orders = 0;
        let mut at = 0;
        while at < run.len() {
            let text = word(&run[at]);
            match &run[at] {
                TokenTree::Ident(_) if is_import(&run[at..]) || is_constant(&run[at..]) => {
                    at += run[at..].iter().take_while(|token| word(token) != ";").count();
                    continue;
                }
                TokenTree::Ident(_) if text == "fn" => {
                    // A type of functions has no name.
                    inner = run.get(at + 1).map(word).filter(|name| !name.is_empty());
                }
                TokenTree::Ident(name) => {
                    if let Some(order) = self.order(run, at) {
                        let start = run[path_start(run, at)].span().byte_range().start;
                        let range = start..name.span().byte_range().end;
                        if let Some(order) = order {
                            self.note(function, call, order, orders == 1, range);
                        }
                        orders += 1;
                    }
                }
                TokenTree::Group(group) => {
                    let is_body = group.delimiter() == Delimiter::Brace && inner.is_some();
                    let body = if is_body { inner.take() } else { None };
                    let called = called(run, at, group);
                    let tokens: Vec<_> = group.stream().into_iter().collect();
                    self.run(&tokens, body.as_deref().unwrap_or(function), called.as_ref().or(call));
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// The order that the name at `at` is; `Some(None)` for `Relaxed`.
    fn order(&self, run: &[TokenTree], at: usize) -> Option<Option<Order>> {
        let name = word(&run[at]);
        if let Some(order) = self.constants.get(&name) {
            return Some(Some(*order));
        }
        let path: Vec<_> = run[..at].iter().rev().take(3).map(word).collect();
        let is_of_path = path == [":", ":", "Ordering"];
        let order = Order::named(&name);
        (is_of_path && (order.is_some() || name == "Relaxed")).then_some(order)
    }

    fn note(&mut self, function: &str, call: Option<&Call>, order: Order, is_second: bool, at: Range<usize>) {
        let operation = call.map_or_else(String::new, |call| call.operation.clone());
        let has_two = ["compare_exchange", "fetch_update"].iter().any(|two| operation.contains(two));
        self.places.push(Place {
            function: function.to_owned(),
            operation,
            order,
            is_failure: has_two && is_second,
            at,
            fence: call.and_then(|call| call.fence.clone()),
        });
    }
}

/// Whether `run` begins with an import; `use<..>` in a type is none.
fn is_import(run: &[TokenTree]) -> bool {
    word(&run[0]) == "use" && run.get(1).is_none_or(|next| word(next) != "<")
}

/// Whether `run` begins with the definition of a constant that stands for an order.
fn is_constant(run: &[TokenTree]) -> bool {
    let start: Vec<_> = run.iter().take(4).map(word).collect();
    matches!(&start[..], [keyword, _, colon, kind] if keyword == "const" && colon == ":" && kind == "Ordering")
}

/// Where the path starts whose last name is at `at`.
fn path_start(run: &[TokenTree], at: usize) -> usize {
    let mut start = at;
    while start >= 3 && word(&run[start - 1]) == ":" && word(&run[start - 2]) == ":" {
        start -= 3;
    }
    start
}

/// The call whose arguments are the group at `at`.
fn called(run: &[TokenTree], at: usize, group: &Group) -> Option<Call> {
    if group.delimiter() != Delimiter::Parenthesis {
        return None;
    }
    let name = at.checked_sub(1).and_then(|before| match &run[before] {
        TokenTree::Ident(name) => Some(name),
        _ => None,
    })?;
    let method = name.to_string();
    if method == "fence" {
        let start = run[path_start(run, at - 1)].span().byte_range().start;
        return Some(Call { operation: method, fence: Some(start..group.span().byte_range().end) });
    }
    // What it is called on: the last name in front of the dot, whatever fields without a name and arguments are in between.
    let is_method = at >= 2 && word(&run[at - 2]) == ".";
    let receiver = run[..at - 1].iter().rev().skip(1).find(|token| matches!(token, TokenTree::Ident(_)));
    let operation = match receiver {
        Some(receiver) if is_method => format!("{receiver}.{method}"),
        _ => method,
    };
    Some(Call { operation, fence: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let constants = Constants::from([("RELEASE".to_owned(), Order::Release)]);
        let places = places(text, &constants).unwrap();
        let show = |place: &Place| {
            let failure = if place.is_failure { " failure" } else { "" };
            let Place { function, operation, order, at, .. } = place;
            format!("{function} {operation}{failure} {} `{}`", order.name(), &text[at.clone()])
        };
        places.iter().map(show).collect()
    }

    #[test]
    fn operations_are_found_by_function_and_receiver() {
        let text = "fn a() { self.state.load(Ordering::Acquire); x.top(1)\n.0.store(2, RELEASE) }\n\
                    fn b() -> impl Fn() + use<> { let c = |x| { y.swap(1, core::sync::atomic::Ordering::AcqRel) }; }";
        assert_eq!(
            found(text),
            [
                "a state.load Acquire `Ordering::Acquire`",
                "a top.store Release `RELEASE`",
                "b y.swap AcqRel `core::sync::atomic::Ordering::AcqRel`"
            ]
        );
    }

    #[test]
    fn two_orders_are_told_apart() {
        let text = "fn a() { s.compare_exchange(1, 2, Ordering::Relaxed, Ordering::Acquire);\n\
                    s.compare_exchange_weak(f(1), 2, RELEASE, Ordering::Relaxed);\n\
                    s.fetch_update(Ordering::AcqRel, Ordering::Acquire, |x| Some(x)) }";
        assert_eq!(
            found(text),
            [
                "a s.compare_exchange failure Acquire `Ordering::Acquire`",
                "a s.compare_exchange_weak Release `RELEASE`",
                "a s.fetch_update AcqRel `Ordering::AcqRel`",
                "a s.fetch_update failure Acquire `Ordering::Acquire`"
            ]
        );
    }

    #[test]
    fn definitions_imports_tests_and_comments_are_none() {
        let text = "use sync::{Ordering, RELEASE};\nconst RELEASE: Ordering = Ordering::Release;\n\
                    // Ordering::Acquire\nfn a() { \"Ordering::Acquire\"; cmp::Ordering::Less; Ordering::Relaxed }\n\
                    #[cfg(test)]\nmod tests { fn b() { x.load(Ordering::Acquire); } }\n\
                    #[cfg(all(test, loom))]\nx.load(Ordering::Acquire);";
        assert_eq!(found(text), [""; 0]);
        assert_eq!(constants(text).unwrap(), Constants::from([("RELEASE".to_owned(), Order::Release)]));
    }

    #[test]
    fn what_is_weaker() {
        let weaker = |text: &str| places(text, &Constants::new()).unwrap()[0].weaker();
        assert_eq!(weaker("a.load(Ordering::SeqCst)"), ["Acquire"]);
        assert_eq!(weaker("a.store(1, Ordering::SeqCst)"), ["Release"]);
        assert_eq!(weaker("a.swap(1, Ordering::SeqCst)"), ["AcqRel"]);
        assert_eq!(weaker("a.swap(1, Ordering::AcqRel)"), ["Acquire", "Release"]);
        assert_eq!(weaker("a.swap(1, Ordering::Acquire)"), ["Relaxed"]);
        assert_eq!(weaker("fence(Ordering::SeqCst)"), ["AcqRel"]);
        let fences = places("f(); sync::fence(Ordering::Acquire);", &Constants::new()).unwrap();
        assert_eq!(fences[0].fence, Some(5..35));
    }
}

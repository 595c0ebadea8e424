//! Frames that say how memory is requested, and not who requested it: of allocators, of the
//! recorder, and of the standard library's collections.

use std::rc::Rc;

use super::{Frame, last_part};

/// What the library that records is called: a file, or memory.
pub(super) const RECORDER: &str = "libbufpreload";
/// Functions of C that request memory.
const OF_C: &str = "malloc calloc realloc reallocarray aligned_alloc memalign posix_memalign pvalloc valloc";
/// How the names of functions begin that pass a request of Rust or C++ on to the allocator.
const PASS_ON: [&str; 10] = [
    "operator new",
    "__rust_",
    "__rustc::",
    "__rg_",
    "__rdl_",
    "alloc::alloc::",
    "alloc::raw_vec::",
    "<alloc::alloc::Global as ",
    "<alloc::raw_vec::",
    "__gnu_cxx::new_allocator<",
];
/// Sources of such functions, where a name says less.
const SOURCES: [&str; 2] = ["/library/alloc/src/alloc.rs", "/library/alloc/src/raw_vec"];
/// Packages and folders of the standard libraries.
const STANDARD: [&str; 4] = ["alloc", "core", "std", "__gnu_cxx"];
const STANDARD_SOURCES: [&str; 4] =
    ["/library/alloc/src/", "/library/core/src/", "/library/std/src/", "/include/c++/"];

/// Returns the frames from the call site on that requested memory. In front of it are those of the
/// allocator and those in the standard library, of which the outermost stays: it says what the
/// program called.
pub(super) fn shown(frames: &[Rc<Frame>]) -> &[Rc<Frame>] {
    let inner = |frame: &&Rc<Frame>| is_allocator(frame) || is_standard(frame);
    let count = frames.iter().take_while(inner).count();
    let start = match count.checked_sub(1).map(|last| &frames[last]) {
        Some(last) if count == frames.len() || !is_allocator(last) => count - 1,
        _ => count,
    };
    &frames[start..]
}

/// Returns whether a frame is of an allocator, of a recorder, or of what passes requests on to one.
fn is_allocator(frame: &Frame) -> bool {
    if last_part(&frame.module).contains(RECORDER) {
        return true;
    }
    let is_source = |file: &String| SOURCES.iter().any(|source| file.contains(source)) || is_recorder(file);
    if frame.file.as_ref().is_some_and(is_source) {
        return true;
    }
    let Some(name) = frame.function.as_deref() else { return false };
    let of_c = name.trim_start_matches("__libc_").trim_start_matches("__");
    OF_C.split(' ').any(|name| name == of_c)
        || PASS_ON.iter().any(|start| name.starts_with(start))
        || name.contains(" as core::alloc::global::GlobalAlloc>::")
        || package(name) == "buftrace"
}

/// Returns whether a file is one of the recorder's sources: in `buftrace`, or in `buftrace-0.1.0`
/// where it comes from a registry.
fn is_recorder(file: &str) -> bool {
    file.split_once("/src/heap/").is_some_and(|(folder, _)| last_part(folder).starts_with("buftrace"))
}

/// Returns whether a frame is of the standard library of Rust or C++.
fn is_standard(frame: &Frame) -> bool {
    if let Some(file) = &frame.file {
        return STANDARD_SOURCES.iter().any(|source| file.contains(source));
    }
    frame.function.as_deref().is_some_and(|name| STANDARD.contains(&package(name)))
}

/// Returns the first part of a path: the package of `<T as alloc::slice::ToOwned>::to_owned` is
/// `alloc`, where the method is.
fn package(name: &str) -> &str {
    let path = name.trim_start_matches(['<', '&']);
    let path = if name.starts_with('<') { path.split_once(" as ").map_or(path, |(_, of)| of) } else { path };
    path.split("::").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, file: Option<&str>) -> Rc<Frame> {
        let function = Some(name.to_owned());
        Rc::new(Frame { function, file: file.map(str::to_owned), ..super::super::frame("/bin/app", 1) })
    }

    fn first(names: &[(&str, Option<&str>)]) -> String {
        let frames: Vec<_> = names.iter().map(|(name, file)| frame(name, *file)).collect();
        shown(&frames)[0].name()
    }

    #[test]
    fn the_place_is_who_requested() {
        // Without debug information.
        let rust = [
            ("<buftrace::heap::wrapper::RecordingAlloc<A> as core::alloc::global::GlobalAlloc>::alloc", None),
            ("__rustc::__rust_alloc", None),
            ("alloc::raw_vec::RawVecInner<A>::try_allocate_in", None),
            ("alloc::vec::Vec<T>::with_capacity_in", None),
            ("<T as alloc::slice::<impl [T]>::to_vec_in::ConvertVec>::to_vec", None),
            ("alloc::slice::<impl [T]>::to_vec", None),
            ("app::read", None),
            ("std::rt::lang_start", None),
        ];
        assert_eq!(first(&rust), "alloc::slice::<impl [T]>::to_vec");
        // With it, where names may lack their path.
        let library = "/rustc/abc/library/alloc/src/";
        let (raw, vec) = (format!("{library}raw_vec/mod.rs"), format!("{library}vec/mod.rs"));
        let named =
            [("with_capacity_in<u8>", Some(&*raw)), ("with_capacity<u8>", Some(&vec)), ("read", None)];
        assert_eq!(first(&named), "with_capacity<u8>");
        // The recorder, where names lack their path.
        let registry = Some("/registry/src/buftrace-0.1.0/src/heap/recorder.rs");
        let recorder = [("allocated", registry), ("__rustc::__rust_alloc", None), ("allocated", None)];
        assert_eq!(first(&recorder), "allocated");
        assert_eq!(shown(&recorder.map(|(name, file)| frame(name, file))).len(), 1);
        assert_eq!(first(&[("allocated", Some("/app/src/heap/recorder.rs")), ("main", None)]), "allocated");
        // C and C++: what passes requests on is left out, and what a program calls so is not.
        assert_eq!(first(&[("malloc", None), ("xmalloc", None), ("main", None)]), "xmalloc");
        assert_eq!(first(&[("__libc_calloc", None), ("main", None)]), "main");
        let cpp =
            [("operator new(unsigned long)", None), ("std::vector<int>::reserve", None), ("main", None)];
        assert_eq!(first(&cpp), "std::vector<int>::reserve");
        // Something stays.
        assert_eq!(first(&[("malloc", None)]), "malloc");
        assert!(shown(&[]).is_empty());
    }

    #[test]
    fn packages_of_names() {
        for (name, expected) in [
            ("app::read", "app"),
            ("main", "main"),
            ("<app::Body as bytes::Buf>::chunk", "bytes"),
            ("<alloc::vec::Vec<T>>::push", "alloc"),
            ("<&T as core::fmt::Debug>::fmt", "core"),
        ] {
            assert_eq!(package(name), expected, "{name}");
        }
    }
}

//! Names of the addresses in the recording of a heap: functions, files and lines.
//!
//! - `module`: whether the file of some code is still that which ran.
//! - `internal`: which frames are of allocators, and of the standard library.

mod internal;
mod module;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use addr2line::Loader;
use buftrace::{Module, Profile};
use serde::{Deserialize, Serialize};

use internal::shown;
pub(crate) use module::is_rust;

/// A frame of a call stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Frame {
    /// Its name as in the source, where there are symbols.
    pub(crate) function: Option<String>,
    /// The file of its source, where there is debug information.
    pub(crate) file: Option<String>,
    /// The line in it.
    pub(crate) line: Option<u32>,
    /// Whether the compiler has put the function into the next one.
    pub(crate) inlined: bool,
    /// The file of its code; empty where that is not known.
    pub(crate) module: String,
    /// The address of the call: in the module, or in the process where that is not known.
    pub(crate) address: u64,
}

impl Frame {
    /// Returns the function, or the address where it has no name.
    pub(crate) fn name(&self) -> String {
        match &self.function {
            Some(function) => function.clone(),
            None if self.module.is_empty() => format!("{:#x}", self.address),
            None => format!("{}+{:#x}", last_part(&self.module), self.address),
        }
    }

    /// Returns the same with the line, where that is known: the last two parts of its path are
    /// enough for people.
    pub(crate) fn location(&self) -> String {
        let mut location = self.name();
        if let Some(file) = &self.file {
            let start = file.rmatch_indices(['/', '\\']).nth(1).map_or(0, |(at, _)| at + 1);
            let line = self.line.map_or_else(String::new, |line| format!(":{line}"));
            location += &format!(" ({}{line})", &file[start..]);
        }
        location
    }
}

/// Returns what is behind the last slash.
fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The call stacks of a recording, with names.
#[derive(Debug)]
pub(crate) struct Stacks {
    /// By number: innermost first, without the frames of the allocator.
    frames: Vec<Vec<Rc<Frame>>>,
    /// Code that has no names here, and why: by path.
    pub(crate) nameless: BTreeMap<String, String>,
}

impl Stacks {
    /// Reads the names out of the files of the code, as far as these are still there.
    pub(crate) fn of(heap: &Profile) -> Self {
        let mut names =
            Names { heap, loaders: HashMap::new(), known: HashMap::new(), nameless: BTreeMap::new() };
        let stacks = u32::try_from(heap.stacks()).unwrap_or(u32::MAX);
        let mut frames = |number| {
            let addresses = heap.stack(number).iter();
            shown(&addresses.flat_map(|address| names.frames(number, *address)).collect::<Vec<_>>()).to_vec()
        };
        Self { frames: (0..stacks).map(&mut frames).collect(), nameless: names.nameless }
    }

    /// Returns the frames of a stack.
    pub(crate) fn frames(&self, number: u32) -> &[Rc<Frame>] {
        self.frames.get(number as usize).map_or(&[], Vec::as_slice)
    }
}

/// What was read so far.
struct Names<'a> {
    heap: &'a Profile,
    /// By path and build id; nothing where the names must not or cannot be read.
    loaders: HashMap<(&'a str, &'a str), Option<Loader>>,
    /// By return address, and the path of its code.
    known: HashMap<(u64, Option<&'a str>), Vec<Rc<Frame>>>,
    nameless: BTreeMap<String, String>,
}

impl<'a> Names<'a> {
    /// Returns the frames of a return address, innermost first: several where functions are
    /// inlined.
    fn frames(&mut self, stack: u32, address: u64) -> Vec<Rc<Frame>> {
        // The call is in front of where it returns to.
        let call = address.saturating_sub(1);
        let module = self.heap.module_of(stack, call);
        let key = (address, module.map(|module| &*module.path));
        if let Some(frames) = self.known.get(&key) {
            return frames.clone();
        }
        let frames = match module {
            None => vec![frame("", call)],
            Some(module) => {
                let address = module.address_in_file(call);
                let loader = self.loader(module);
                let named = loader.map(|loader| read(loader, &module.path, address));
                if let Some(None) = named {
                    self.note(module, "it has no symbols for some of its addresses".into());
                }
                named.flatten().unwrap_or_else(|| vec![frame(&module.path, address)])
            }
        };
        let frames: Vec<_> = frames.into_iter().map(Rc::new).collect();
        self.known.insert(key, frames.clone());
        frames
    }

    fn loader(&mut self, module: &'a Module) -> Option<&Loader> {
        let key = (&*module.path, &*module.build_id);
        if !self.loaders.contains_key(&key) {
            let found = module::check(module, self.heap.info().started_at);
            let loader = found.and_then(|path| {
                Loader::new(path).map_err(|error| format!("its symbols cannot be read: {error}"))
            });
            let loader = loader.map_err(|why| self.note(module, why)).ok();
            self.loaders.insert(key, loader);
        }
        self.loaders.get(&key)?.as_ref()
    }

    /// Notes why some code has no names. Code of the system that is in no file never has any, and
    /// that of the recorder is not shown.
    fn note(&mut self, module: &Module, why: String) {
        if !module.path.starts_with('[') && !module.path.contains(internal::RECORDER) {
            self.nameless.entry(module.path.clone()).or_insert(why);
        }
    }
}

fn frame(module: &str, address: u64) -> Frame {
    Frame { function: None, file: None, line: None, inlined: false, module: module.to_owned(), address }
}

/// Looks an address up: in the debug information, or in the table of symbols. Nothing where it is
/// in neither.
fn read(loader: &Loader, module: &str, address: u64) -> Option<Vec<Frame>> {
    let mut frames = Vec::new();
    // Damage behind some frame leaves those in front of it.
    if let Ok(mut found) = loader.find_frames(address) {
        while let Ok(Some(one)) = found.next() {
            let name = one.function.as_ref().and_then(|name| Some(name.demangle().ok()?.into_owned()));
            let location = one.location.as_ref();
            frames.push(Frame {
                function: name,
                file: location.and_then(|location| location.file).map(str::to_owned),
                line: location.and_then(|location| location.line).filter(|line| *line > 0),
                inlined: true,
                ..frame(module, address)
            });
        }
    }
    if frames.is_empty() {
        frames.push(frame(module, address));
    }
    // All are inlined into the last one, which has a symbol: often with the path that its name in
    // the debug information lacks.
    let last = frames.last_mut()?;
    last.inlined = false;
    if let Some(symbol) = loader.find_symbol(address) {
        last.function = Some(addr2line::demangle_auto(symbol.into(), None).into_owned());
    }
    last.function.is_some().then_some(frames)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a frame of a program with debug information.
    pub(crate) fn named(function: &str, line: Option<u32>) -> Frame {
        Frame {
            function: Some(function.into()),
            file: Some("/app/src/main.rs".into()),
            line,
            ..frame("/bin/app", 1)
        }
    }

    #[test]
    fn frames_are_shown_by_what_is_known() {
        let mut frame = frame("/usr/lib/libc.so.6", 0x1234);
        assert_eq!((frame.name(), frame.location()), ("libc.so.6+0x1234".into(), "libc.so.6+0x1234".into()));
        frame.function = Some("qsort".into());
        assert_eq!(frame.location(), "qsort");
        (frame.file, frame.line) = (Some("/build/glibc/stdlib/qsort.c".into()), Some(7));
        assert_eq!((frame.name(), frame.location()), ("qsort".into(), "qsort (stdlib/qsort.c:7)".into()));
        assert_eq!(super::frame("", 16).location(), "0x10");
    }
}

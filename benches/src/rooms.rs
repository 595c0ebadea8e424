//! The rooms of this package import each other in one direction, as the table in `lib.rs` says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms, each with those that it may import from, which come before it.
fn rooms(lib: &str) -> Vec<(String, Vec<String>)> {
    let quoted = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(|name| name.trim_matches(['[', ']']).to_owned()).collect()
    };
    lib.lines()
        .filter_map(|line| line.strip_prefix("//! | [`"))
        .map(|row| {
            let cells: Vec<&str> = row.trim_end_matches(['|', ' ']).split(" | ").collect();
            let name = row.split('`').next().unwrap_or_default().to_owned();
            let imports = if cells.len() == 3 { quoted(cells[2]) } else { Vec::new() };
            (name, imports)
        })
        .collect()
}

/// All source files below `folder`.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).expect("a folder of sources").map(|entry| entry.expect("readable").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let below = folders.iter().flat_map(|folder| sources(folder));
    files
        .into_iter()
        .filter(|file| file.extension().is_some_and(|ending| ending == "rs"))
        .chain(below)
        .collect()
}

/// The rooms that a text names after `crate::`. Unit tests at its end do not count: they try a room
/// with what is at hand.
fn named(text: &str) -> Vec<&str> {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.split("crate::")
        .skip(1)
        .map(|rest| {
            let end = rest.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
            &rest[..end.unwrap_or(rest.len())]
        })
        .collect()
}

#[test]
fn rooms_import_in_one_direction() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(src.join("lib.rs")).expect("lib.rs");
    let rooms = rooms(&lib);
    assert!(rooms.len() >= 6, "the table in lib.rs lists the rooms: {rooms:?}");
    let modules: Vec<&str> =
        lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let mut seen = BTreeMap::new();
    for (place, (room, imports)) in rooms.iter().enumerate() {
        assert!(modules.contains(&room.as_str()), "`{room}` is no module of lib.rs");
        for import in imports {
            let earlier = rooms[..place].iter().any(|(name, _)| name == import);
            assert!(earlier, "`{room}` may import from `{import}` only if that is listed above it");
        }
        let folder = src.join(room);
        let files = if folder.is_dir() { sources(&folder) } else { vec![src.join(format!("{room}.rs"))] };
        for file in files {
            let text = fs::read_to_string(&file).expect("a source file");
            for other in named(&text) {
                let allowed = other == room || imports.iter().any(|import| import == other);
                assert!(allowed, "{}: `{room}` imports from `{other}`", file.display());
            }
        }
        seen.insert(room.as_str(), imports.len());
    }
    assert_eq!(seen.len(), modules.len(), "the table in lib.rs lists every module");
}

//! What the architecture says about the sources, checked on the sources.

mod layering;
mod lua;
mod owners;
mod panics;
mod size;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A file of this repository.
struct Source {
    /// Its path from the root, with `/`.
    path: String,
    text: String,
}

/// All files below these folders with this extension, in order.
fn sources(folders: &[&str], extension: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                let text = fs::read_to_string(&path).unwrap();
                let path = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                found.push(Source { path, text });
            }
        }
    }
    assert!(!found.is_empty(), "nothing in {folders:?}");
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn rust() -> Vec<Source> {
    sources(&["src"], "rs")
}

impl Source {
    /// The lines that are not comments, numbered from 1.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let mark = if self.path.ends_with(".lua") { "--" } else { "//" };
        let lines = self.text.lines().enumerate();
        lines
            .filter(move |(_, line)| !line.trim_start().starts_with(mark))
            .map(|(at, line)| (at + 1, line))
    }

    /// Where this word stands in the code: not as a part of a longer one.
    fn word(&self, word: &str) -> Vec<String> {
        let lines = self.code().filter(|(_, line)| has_word(line, word));
        lines.map(|(at, line)| format!("{}:{at}: {}", self.path, line.trim())).collect()
    }
}

fn has_word(line: &str, word: &str) -> bool {
    let part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    line.match_indices(word).any(|(at, _)| {
        let bytes = line.as_bytes();
        !part(at.checked_sub(1).map(|before| &bytes[before])) && !part(bytes.get(at + word.len()))
    })
}

/// Fails where any of these words stands in the code of a file that is not `allowed` to have it.
fn only(words: &[&str], files: &[Source], allowed: impl Fn(&str) -> bool) {
    let others = files.iter().filter(|file| !allowed(&file.path));
    let found: Vec<String> =
        others.flat_map(|file| words.iter().flat_map(|word| file.word(word))).collect();
    assert!(found.is_empty(), "{words:?} elsewhere:\n{}", found.join("\n"));
}

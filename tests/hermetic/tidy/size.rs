//! Files that can be read in one go.

use super::sources;

const MAX_LINES: usize = 350;

#[test]
fn no_file_is_longer_than_a_reader_holds() {
    let mut files = sources(&["src", "tests", "examples", "benches"], "rs");
    files.extend(sources(&["lua"], "lua"));
    for file in files {
        let lines = file.text.lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines, of at most {MAX_LINES}", file.path);
    }
}

#[test]
fn the_root_declares_and_exports_and_does_nothing_else() {
    let root = sources(&["src"], "rs").into_iter().find(|file| file.path == "src/lib.rs").unwrap();
    for word in ["fn", "impl", "struct", "enum", "trait", "static", "const"] {
        assert_eq!(root.word(word), Vec::<String>::new());
    }
}

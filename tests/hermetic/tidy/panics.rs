//! A limiter takes nothing down with it: it panics only where its documentation says so.

use super::rust;

const PANICS: [&str; 10] = [
    ".unwrap()",
    ".expect(",
    "panic!",
    "assert!",
    "assert_eq!",
    "assert_ne!",
    "unreachable!",
    "todo!",
    "unimplemented!",
    ".unwrap_err()",
];

#[test]
fn the_library_panics_only_in_constructors_that_say_so() {
    // Constructors of literals, a capacity of nothing, and settings of a breaker.
    let places = [
        "src/quota/mod.rs",
        "src/key/header.rs",
        "src/store/memory/mod.rs",
        "src/resilience/breaker/settings.rs",
    ];
    for file in rust() {
        for (at, line) in file.code() {
            let panics = PANICS.iter().any(|word| line.contains(word));
            let allowed = places.contains(&&*file.path) && !line.contains("unwrap");
            assert!(!panics || allowed, "{}:{at}: {}", file.path, line.trim());
        }
    }
}

#[test]
fn what_panics_documents_it() {
    for file in rust() {
        // What a constructor of literals is given, it hands on.
        let words: Vec<&str> = PANICS.into_iter().chain(["Quota::literal("]).collect();
        let panics = file.code().any(|(_, line)| words.iter().any(|word| line.contains(word)));
        assert_eq!(panics, file.text.contains("/// # Panics"), "{}", file.path);
    }
}

#[test]
fn there_is_no_unsafe_code() {
    let manifest = include_str!("../../../Cargo.toml");
    assert!(manifest.contains("unsafe_code = \"forbid\""));
    assert!(rust().iter().all(|file| file.word("unsafe").is_empty()));
}

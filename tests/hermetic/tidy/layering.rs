//! Each module imports only what stands before it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, rust};

const BASE: [&str; 4] = ["time", "quota", "decision", "failure"];

/// What each top-level module may import.
fn allowed() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let with = |more: &[&'static str]| BASE.iter().chain(more).copied().collect::<BTreeSet<_>>();
    let arithmetic = ["key", "algorithm"];
    let middle = ["key", "algorithm", "policy", "store", "telemetry"];
    [
        ("time", BTreeSet::new()),
        ("quota", ["time"].into()),
        ("decision", ["time", "quota"].into()),
        ("failure", BTreeSet::new()),
        ("key", with(&[])),
        ("algorithm", with(&[])),
        ("policy", with(&arithmetic)),
        ("config", with(&["key", "algorithm", "policy", "auth"])),
        // Only a store can tell what becomes of its own errands.
        ("store", with(&[&arithmetic[..], &["telemetry"]].concat())),
        ("resilience", with(&middle)),
        ("accel", with(&middle)),
        ("limiter", with(&[&middle[..], &["resilience", "accel"]].concat())),
        ("http", with(&[&middle[..], &["resilience", "limiter"]].concat())),
        ("auth", with(&[&middle[..], &["resilience", "limiter", "http"]].concat())),
        // What it measures with is a clock, which `time` alone reads.
        ("telemetry", ["decision", "time"].into()),
        ("docs", BTreeSet::new()),
    ]
    .into()
}

/// The top-level module that a file belongs to.
fn module(path: &str) -> &str {
    path.strip_prefix("src/").unwrap().split(['/', '.']).next().unwrap()
}

/// The first names of all paths that begin with `crate::`.
fn imports(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.insert(first(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = true;
        for (at, byte) in group.bytes().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' if depth == 0 => break,
                b'}' => depth -= 1,
                b',' if depth == 0 => start = true,
                b' ' | b'\n' => {}
                _ if start => {
                    names.insert(first(&group[at..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    names
}

fn first(path: &str) -> String {
    path.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect()
}

fn code(file: &Source) -> String {
    file.code().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_module_imports_only_what_stands_before_it() {
    let allowed = allowed();
    for file in rust().iter().filter(|file| file.path != "src/lib.rs") {
        let module = module(&file.path);
        for name in imports(&code(file)) {
            assert!(
                name == module || allowed[module].contains(&*name),
                "{} imports `{name}`: `{module}` may import only {:?}",
                file.path,
                allowed[module]
            );
        }
    }
}

#[test]
fn every_module_has_its_place() {
    let places = allowed();
    for file in rust().iter().filter(|file| file.path != "src/lib.rs") {
        let module = module(&file.path);
        assert!(places.contains_key(module), "{}: where does `{module}` stand?", file.path);
    }
}

#[test]
fn no_module_reaches_others_around_the_root() {
    for file in rust() {
        let depth = file.path.split('/').count() - 2 - usize::from(file.path.ends_with("/mod.rs"));
        // `super` once more than that is the root.
        let escape = "super::".repeat(depth + 1);
        assert!(!code(&file).contains(&escape), "{} names `{escape}`", file.path);
    }
}

#[test]
fn imports_are_read_whole() {
    let code = "use crate::{\n    a::{b, c::{d, e}},\n    f, g,\n};\nlet x = crate::h::i;";
    assert_eq!(imports(code), ["a", "f", "g", "h"].map(String::from).into());
}

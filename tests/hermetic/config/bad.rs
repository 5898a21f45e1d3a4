//! What is said of bad files.

use std::io::ErrorKind;

use tollgate::config::{self, Config};

use super::{extractors, world::files};

/// A good file, in which each case changes one thing.
const GOOD: &str = include_str!("good.toml");

/// What is replaced, by what, and what is then said, behind the name of the file.
fn cases() -> impl Iterator<Item = (String, String, &'static str)> {
    include_str!("bad.txt").trim_end().split("\n\n").map(|case| {
        let lines: Vec<&str> = case.trim_end().lines().collect();
        let [find, replace, told] = lines[..] else { panic!("{case}") };
        let text = |line: &str| line[1..].trim_start().replace("\\n", "\n");
        (text(find), text(replace), told.strip_prefix("= ").unwrap_or_default())
    })
}

fn changed(find: &str, replace: &str) -> String {
    assert!(GOOD.contains(find), "{find}");
    GOOD.replacen(find, replace, 1)
}

#[test]
fn each_names_the_line_and_the_field_and_what_would_be_right() {
    let mut wrong = Vec::new();
    for (find, replace, expected) in cases() {
        let told = match config::from_toml(&changed(&find, &replace), &extractors()) {
            Ok(_) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        };
        if told != expected {
            let [find, replace] = [find, replace].map(|text| text.replace('\n', "\\n"));
            wrong.push(format!("- {find}\n+ {replace}\n= {told}\n"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_good_one_is_good() {
    config::from_toml(GOOD, &extractors()).unwrap();
}

#[test]
fn a_file_without_a_policy_is_bad() {
    for text in ["", "# nothing yet\n", "policy = []"] {
        let error = config::from_toml(text, &extractors()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 1, column 1: there is no policy; one begins with `[[policy]]`"
        );
    }
}

#[test]
fn a_policy_with_too_many_limits_is_bad() {
    let mut text = "[[policy]]\nname = \"api\"\notherwise = true\n".to_owned();
    for at in 1..=9 {
        text += &format!("[[policy.limit]]\nname = \"{at}\"\nkey = \"ip\"\nquota = \"5/m\"\n");
    }
    let error = config::from_toml(&text, &extractors()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 36, column 1, policy `api`, limit `9`: 9 limits: it must have 1 to 8"
    );
}

/// The same, but for lines, of what was no TOML.
#[test]
fn what_comes_from_elsewhere_has_no_lines() {
    let mut told = 0;
    for (find, replace, expected) in cases() {
        let Ok(config) = Config::from_toml(&changed(&find, &replace)) else { continue };
        let json = serde_json::to_string(&config).unwrap();
        let config: Config = serde_json::from_str(&json).unwrap();
        let error = config.build(&extractors()).unwrap_err();
        assert_eq!((error.line(), error.column()), (None, None));
        let (_, of_line) = expected.split_once("column ").unwrap();
        let start = of_line.find([',', ':']).unwrap() + 2;
        // A date of TOML's own becomes a text.
        let expected =
            of_line[start..].replace("= 2027-01-01T00:00:00:", "= \"2027-01-01T00:00:00\":");
        assert_eq!(error.to_string(), expected);
        told += 1;
    }
    assert!(told > 50, "{told}");
}

#[test]
fn the_file_is_named() {
    let text = GOOD.replace("\"20/s\"", "\"20/x\"");
    let folder = files(&[("limits.toml", &text)]);
    let path = folder.path().join("limits.toml");
    let error = config::from_file(&path, &extractors()).unwrap_err();
    let start = format!("{}, line 27, column 9, policy `api`, limit `burst`: ", path.display());
    assert!(error.to_string().starts_with(&start), "{error}");
    assert_eq!((error.line(), error.column(), error.io_kind()), (Some(27), Some(9), None));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = files(&[]);
    let path = folder.path().join("limits.toml");
    let error = config::from_file(&path, &extractors()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}: it cannot be read: No such file or directory (os error 2)", path.display())
    );
    assert_eq!((error.line(), error.io_kind()), (None, Some(ErrorKind::NotFound)));
}

#[test]
fn columns_count_characters() {
    let text = GOOD.replace("{ pro = \"200/s\"", "{ \"größte\" = \"1/s\", pro = \"x\"");
    let error = config::from_toml(&text, &extractors()).unwrap_err();
    assert_eq!((error.line(), error.column()), (Some(30), Some(35)));
}

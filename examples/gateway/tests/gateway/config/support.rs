//! A file, and a gateway that goes by it.

use std::{fs, path::PathBuf, process::Output};

use tempfile::TempDir;

use crate::support::{Gateway, run};

/// A folder with the file of a gateway.
pub(super) struct Folder(TempDir);

impl Folder {
    pub(super) fn new(text: &str) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        folder.write(text);
        fs::write(folder.path("admin.token"), "a token that nobody guesses")
            .expect("it is written");
        folder
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The name of the configuration.
    pub(super) fn file(&self) -> String {
        self.path("gateway.toml").display().to_string()
    }

    /// Puts another file into its place, as those do who must not be read halfway.
    pub(super) fn write(&self, text: &str) {
        let new = self.path("new.toml");
        fs::write(&new, text).expect("it can be written");
        fs::rename(new, self.path("gateway.toml")).expect("it can be put there");
    }

    pub(super) fn start(&self, args: &[&str]) -> Gateway {
        Gateway::start(&[&["--config", &self.file()], args].concat())
    }

    pub(super) fn run(&self, args: &[&str]) -> Output {
        run(&[&["--config", &self.file()], args].concat())
    }
}

/// What the gateway prints of itself.
pub(super) fn built_in() -> String {
    let output = run(&["--print-config"]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The same, with all that it shows.
pub(super) fn whole() -> String {
    let lines = built_in();
    let lines = lines.lines().map(|line| match line.strip_prefix('#') {
        Some(rest) if !rest.is_empty() && !rest.starts_with([' ', '#']) => rest,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

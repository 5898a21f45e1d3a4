//! A server's wall clock that can be stepped.

use std::{
    ffi::OsString,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use tempfile::NamedTempFile;

/// The offset of one server's clock.
#[derive(Debug)]
pub(crate) struct Clock(NamedTempFile);

impl Clock {
    /// A clock that is right. None, where there is no C compiler for it, or another system.
    pub(crate) fn new() -> Option<Self> {
        library()?;
        let clock = Self(NamedTempFile::new().expect("a temporary file"));
        clock.step(0);
        Some(clock)
    }

    /// What the server's environment has to have.
    pub(crate) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let library = library().expect("it was built").into();
        vec![("LD_PRELOAD", library), ("TOLLGATE_CLOCK", self.0.path().into())]
    }

    /// Sets it to be off by so many seconds.
    pub(crate) fn step(&self, seconds: i64) {
        let micros = (seconds * 1_000_000).to_ne_bytes();
        self.0.as_file().write_all_at(&micros, 0).expect("a file to write to");
    }
}

/// Built once.
fn library() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        if !cfg!(all(target_os = "linux", target_pointer_width = "64")) {
            return None;
        }
        let library = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(concat!(env!("CARGO_CRATE_NAME"), "-clock.so"));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clock/clock.c");
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source);
        compile.status().is_ok_and(|status| status.success()).then_some(library)
    });
    built.as_deref()
}

//! Telling whether a file is another one than before.

use std::{fs, path::Path, time::SystemTime};

/// Which state of a file it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Version(SystemTime, u64, u64);

impl Version {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(Self(file.modified().ok()?, file.len(), place(&file)))
    }
}

/// A file that is put into the place of another may have its time and length.
#[cfg(unix)]
fn place(file: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(file)
}

#[cfg(not(unix))]
const fn place(_: &fs::Metadata) -> u64 {
    0
}

//! What is wrong with a file, and where.

use std::{fmt, ops::Range, path::Path};

/// A fault in the file: the line, and what would be right.
#[derive(Debug)]
pub(crate) struct FileError {
    /// None for the command line, by which the built-in file was changed.
    file: Option<String>,
    position: Option<(usize, usize)>,
    what: String,
}

impl FileError {
    pub(super) fn unreadable(path: &Path, cause: &std::io::Error) -> Self {
        let what = format!("it cannot be read: {cause}");
        Self { file: Some(path.display().to_string()), position: None, what }
    }

    /// Of what stands at these bytes of the text.
    pub(super) fn at(
        file: Option<&str>,
        text: &str,
        span: Option<Range<usize>>,
        what: String,
    ) -> Self {
        // What the environment says stands nowhere.
        let span = span.filter(|span| *span != (0..0) && file.is_some());
        let position = span.map(|span| position(text, span.start));
        Self { file: file.map(str::to_owned), position, what }
    }

    /// The crate's own, of a part of the text.
    pub(super) fn of_limits(file: Option<&str>, error: &tollgate::config::ConfigError) -> Self {
        // It names the line by itself.
        Self { file: file.map(str::to_owned), position: None, what: error.to_string() }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(file) = &self.file else { return f.write_str(&self.what) };
        f.write_str(file)?;
        if let Some((line, column)) = self.position {
            write!(f, ", line {line}, column {column}")?;
        }
        let between = if self.what.starts_with("line ") { ", " } else { ": " };
        write!(f, "{between}{}", self.what)
    }
}

impl std::error::Error for FileError {}

/// Line and column, in characters, both from 1.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (line, before[start..].chars().count() + 1)
}

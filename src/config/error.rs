use std::{fmt, io, path::Path as FilePath};

use super::place::{Document, Path};

/// A configuration that cannot be used. As text it names the file, the line, the policy and the limit, the
/// field with its value, and what would be right:
///
/// ```text
/// limits.toml, line 12, column 9, policy `api`, limit `burst`: quota = "20/x": the period must be …
/// ```
#[derive(Clone, Debug)]
pub struct ConfigError {
    file: Option<Box<str>>,
    position: Option<(usize, usize)>,
    /// The policy and the limit, as far as it is about one.
    whose: String,
    /// The field and its value.
    field: String,
    what: Box<str>,
    cause: Option<io::ErrorKind>,
    /// The value that it is about, of a configuration that was built.
    path: Option<Box<Path>>,
}

impl ConfigError {
    /// The line that it is about, from 1, where the configuration is TOML.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.position.map(|(line, _)| line)
    }

    /// The column in that line, in characters from 1.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.position.map(|(_, column)| column)
    }

    /// Why a file could not be read, if it could not.
    #[must_use]
    pub const fn io_kind(&self) -> Option<io::ErrorKind> {
        self.cause
    }

    /// The same, with the line and the values as this text in TOML has them, of which the
    /// [`Config`](super::Config) that was built is a part: its tables stand at the top, among others.
    ///
    /// ```
    /// use serde::Deserialize;
    /// use tollgate::config::{Config, Extractors, PolicyConfig};
    ///
    /// /// A program's own file.
    /// #[derive(Deserialize)]
    /// struct Settings {
    ///     listen: String,
    ///     policy: Vec<PolicyConfig>,
    /// }
    ///
    /// let text = r#"
    /// listen = "[::]:80"
    ///
    /// [[policy]]
    /// name = "api"
    /// otherwise = true
    /// limit = [{ name = "requests", key = "ip", quota = "60/min" }]
    /// "#;
    /// let settings: Settings = toml::from_str(text)?;
    /// let mut limits = Config::default();
    /// limits.policies = settings.policy;
    /// let error = limits.build(&Extractors::new()).unwrap_err().in_text(text);
    /// assert_eq!(error.line(), Some(7));
    /// # Ok::<(), toml::de::Error>(())
    /// ```
    #[must_use]
    pub fn in_text(self, text: &str) -> Self {
        match self.path {
            Some(path) => Self::of_fault_in(Fault { path: *path, what: self.what.into() }, text),
            None => self,
        }
    }

    pub(super) fn unreadable(cause: &io::Error) -> Self {
        Self { cause: Some(cause.kind()), ..Self::new(format!("it cannot be read: {cause}")) }
    }

    /// Of a text that is no TOML, or not of the right shape.
    pub(super) fn of_toml(error: &toml::de::Error, text: &str) -> Self {
        let mut what = plain(error.message());
        let Some(span) = error.span() else { return Self::new(what) };
        if what == "duplicate key" {
            what = format!("`{}` is there twice", text.get(span.clone()).unwrap_or_default());
        }
        let mut own = Self { position: Some(position(text, span.start)), ..Self::new(what) };
        if let Ok(document) = Document::parse(text) {
            let (whose, field, _) = document.describe(&document.path_at(span.start));
            // Where a field is not the right one, its value does not matter.
            let named =
                ["unknown field", "missing field"].iter().any(|it| own.what.starts_with(it));
            (own.whose, own.field) = (whose, if named { String::new() } else { field });
        }
        own
    }

    pub(super) fn of_fault(fault: Fault, document: Option<&Document<'_>>) -> Self {
        let (whose, field) = match document {
            Some(document) => {
                let (whose, field, _) = document.describe(&fault.path);
                (whose, field)
            }
            None => (String::new(), fault.path.to_string()),
        };
        Self { whose, field, path: Some(fault.path.into()), ..Self::new(fault.what) }
    }

    /// The same, in a text that somebody wrote.
    pub(super) fn of_fault_in(fault: Fault, text: &str) -> Self {
        let document = Document::parse(text).ok();
        let start = document.as_ref().map(|document| document.describe(&fault.path).2);
        let position = start.map(|start| position(text, start));
        Self { position, ..Self::of_fault(fault, document.as_ref()) }
    }

    pub(super) fn in_file(self, file: &FilePath) -> Self {
        Self { file: Some(file.display().to_string().into()), ..self }
    }

    fn new(what: String) -> Self {
        Self {
            file: None,
            position: None,
            whose: String::new(),
            field: String::new(),
            what: what.into(),
            cause: None,
            path: None,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = self.position.map(|(line, column)| format!("line {line}, column {column}"));
        let places = [self.file.as_deref(), position.as_deref(), Some(&*self.whose)];
        let places: Vec<&str> = places.into_iter().flatten().filter(|it| !it.is_empty()).collect();
        for part in [&*places.join(", "), &*self.field] {
            if !part.is_empty() {
                write!(f, "{part}: ")?;
            }
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for ConfigError {}

/// What is wrong with a value.
#[derive(Debug)]
pub(super) struct Fault {
    path: Path,
    what: String,
}

impl Fault {
    pub(super) fn new(path: Path, what: impl Into<String>) -> Self {
        Self { path, what: what.into() }
    }
}

/// Line and column, in characters, both from 1.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (line, before[start..].chars().count() + 1)
}

/// Without the names of Rust's types.
fn plain(message: &str) -> String {
    let mut message = message.trim_end().replace('\n', ", ");
    for (kind, words) in [
        ("expected u8", "expected a whole number from 0 to 255"),
        ("expected u16", "expected a whole number from 0 to 65535"),
        ("expected u64", "expected a whole number"),
        ("expected a sequence", "expected an array"),
    ] {
        if message.ends_with(kind) {
            message = message.replace(kind, words);
        }
    }
    message
}

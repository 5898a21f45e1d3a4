//! What the gateway does: a file, or the one that is built in, with what the command line and the
//! environment say instead.

mod edits;
mod error;
mod shape;
mod values;
mod version;

use std::{
    env, fmt, io,
    net::SocketAddr,
    ops::Range,
    path::{Path, PathBuf},
};

use toml::Spanned;

use self::shape::{AdminConfig, RedisConfig};
pub(crate) use self::{
    edits::Edits,
    error::FileError,
    shape::{
        ApiKeysConfig, CorsConfig, CorsTable, File, JwtConfig, RouteConfig, Text, UpstreamConfig,
    },
    values::{Size, Time, whole},
    version::Version,
};

use crate::{file, log::Format};

const BUILT_IN: &str = include_str!("built_in.toml");
/// A file with ten thousand routes has two.
const MOST: u64 = 16 << 20;
const REDIS_URL: &str = "TOLLGATE_REDIS_URL";

/// Where the configuration comes from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    path: Option<PathBuf>,
    edits: Edits,
}

/// A configuration that was read. Whether it can be used shows when it is built.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) file: File,
    /// The whole text, and the name of the file that it is from.
    text: String,
    file_name: Option<String>,
    /// Where files are that it names.
    folder: PathBuf,
    version: Option<Version>,
}

/// What is read once, when the process starts.
#[derive(Debug, PartialEq)]
pub(crate) struct Fixed {
    listen: SocketAddr,
    admin: AdminConfig,
    redis: RedisConfig,
    format: Format,
}

impl Source {
    /// A file, or the one that is built in.
    pub(crate) const fn new(path: Option<PathBuf>, edits: Edits) -> Self {
        Self { path, edits }
    }

    /// The text, with what the command line says instead of it.
    pub(crate) fn text(&self) -> Result<String, FileError> {
        let text = match &self.path {
            Some(path) => {
                let text = file::read(path, MOST).and_then(|bytes| {
                    String::from_utf8(bytes).map_err(|_| io::Error::other("it is no text in UTF-8"))
                });
                text.map_err(|cause| FileError::unreadable(path, &cause))?
            }
            None => BUILT_IN.to_owned(),
        };
        self.edits.apply(&text).map_err(|error| self.fault(&text, &error))
    }

    pub(crate) fn read(&self) -> Result<Config, FileError> {
        // Before it is read: what is written meanwhile is another version.
        let version = self.version();
        let text = self.text()?;
        let mut file: File = toml::from_str(&text).map_err(|error| {
            FileError::at(self.file_name().as_deref(), &text, error.span(), plain(error.message()))
        })?;
        if !self.edits.has_redis()
            && let Ok(url) = env::var(REDIS_URL)
        {
            file.redis.url = Some(Spanned::new(0..0, url));
        }
        let folder = self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        Ok(Config { file, text, file_name: self.file_name(), folder: folder.to_owned(), version })
    }

    pub(crate) fn version(&self) -> Option<Version> {
        self.path.as_deref().and_then(Version::of)
    }

    pub(crate) const fn is_file(&self) -> bool {
        self.path.is_some()
    }

    fn file_name(&self) -> Option<String> {
        self.path.as_ref().map(|path| path.display().to_string())
    }

    fn fault(&self, text: &str, error: &toml_edit::TomlError) -> FileError {
        FileError::at(self.file_name().as_deref(), text, error.span(), plain(error.message()))
    }
}

impl Config {
    /// What is wrong with a value.
    pub(crate) fn fault<T>(&self, value: &Spanned<T>, what: impl Into<String>) -> FileError {
        self.fault_at(value.span(), what)
    }

    pub(crate) fn fault_at(&self, span: Range<usize>, what: impl Into<String>) -> FileError {
        FileError::at(self.file_name(), &self.text, Some(span), what.into())
    }

    pub(crate) fn fault_of(&self, error: tollgate::config::ConfigError) -> FileError {
        match self.file_name() {
            Some(file) => FileError::of_limits(Some(file), &error.in_text(&self.text)),
            None => FileError::of_limits(None, &error),
        }
    }

    /// A file that this one names.
    pub(crate) fn beside(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.join(path)
    }

    /// None, if it is the one that is built in.
    pub(crate) fn file_name(&self) -> Option<&str> {
        self.file_name.as_deref()
    }

    /// What is wrong with a value that the command line may have, too.
    pub(crate) fn fault_of_flag<T>(
        &self,
        value: Option<&Spanned<T>>,
        names: [&str; 2],
        what: impl fmt::Display,
    ) -> FileError {
        let [flag, field] = names;
        let name = if self.file_name.is_some() { field } else { flag };
        self.fault_at(value.map_or(0..0, Spanned::span), format!("{name}: {what}"))
    }

    pub(crate) fn version(&self) -> Option<Version> {
        self.version.clone()
    }

    pub(crate) fn fixed(&self) -> Fixed {
        let File { listen, admin, redis, log, .. } = &self.file;
        Fixed { listen: *listen, admin: admin.clone(), redis: redis.clone(), format: log.format }
    }
}

impl Fixed {
    /// What is other than in `other`.
    pub(crate) fn changes(&self, other: &Self) -> Vec<&'static str> {
        let same = [
            ("listen", self.listen == other.listen),
            ("admin", self.admin == other.admin),
            ("redis", self.redis == other.redis),
            ("log.format", self.format == other.format),
        ];
        same.into_iter().filter(|(_, same)| !same).map(|(what, _)| what).collect()
    }
}

/// On one line.
fn plain(message: &str) -> String {
    message.trim_end().replace('\n', ", ").replace("expected u64", "expected a whole number")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<File, toml::de::Error> {
        toml::from_str(text)
    }

    /// So that what stands behind a `#` does not grow old.
    pub(crate) fn whole() -> String {
        let uncommented = BUILT_IN.lines().map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.is_empty() && !rest.starts_with([' ', '#']) => rest,
            _ => line,
        });
        uncommented.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_built_in_file_is_read_as_it_is_and_with_all_that_it_shows() {
        read(BUILT_IN).unwrap();
        let whole = read(&whole()).unwrap();
        assert_eq!(whole.route.len(), 3);
        assert_eq!(whole.jwt["users"].get_ref().issuer.0, ["https://id.example"]);
        assert_eq!(whole.policy.len(), 3);
    }
}

//! Finds the server binary and learns its version.

use std::{env, ffi::OsString, process::Command, sync::OnceLock};

const VARIABLE: &str = "TOLLGATE_REDIS_SERVER";

/// The server program that all tests of this process use.
#[derive(Debug)]
pub(crate) struct Binary {
    pub(crate) path: OsString,
    /// What it calls itself, such as `Redis 7.0.15`.
    pub(crate) name: String,
    /// Major and minor version, by the program's own numbering.
    pub(crate) version: (u32, u32),
}

impl Binary {
    /// The program named by `TOLLGATE_REDIS_SERVER`, or else `redis-server` from the path.
    ///
    /// # Panics
    ///
    /// If it cannot be run. The message says what to install.
    pub(crate) fn find() -> &'static Self {
        static FOUND: OnceLock<Binary> = OnceLock::new();
        FOUND.get_or_init(|| {
            let path = env::var_os(VARIABLE).unwrap_or_else(|| "redis-server".into());
            let output = match Command::new(&path).arg("--version").output() {
                Ok(output) => output,
                Err(error) => panic!(
                    "cannot run {}: {error}. Install the package `redis-server` (Debian, Ubuntu: \
                     `apt-get install redis-server`; macOS: `brew install redis`), or set \
                     {VARIABLE} to the path of a redis-server or valkey-server.",
                    path.display()
                ),
            };
            let text = String::from_utf8_lossy(&output.stdout);
            let (Some(name), Some(version)) = (parse_name(&text), parse_version(&text)) else {
                panic!("{} has no version: {text}", path.display());
            };
            Self { path, name, version }
        })
    }

    /// Whether it was built with TLS: then it lacks a certificate, and ends without one.
    #[cfg(feature = "tls")]
    pub(crate) fn has_tls(&self) -> bool {
        let arguments = ["--port", "0", "--tls-port", "1", "--save", ""];
        let output = Command::new(&self.path).args(arguments).current_dir(env::temp_dir()).output();
        let output = output.expect("the server can be run");
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&said).contains("tls-cert-file")
    }

    /// The options every server is started with: nothing on disk, everything permitted.
    pub(crate) fn options(&self) -> &'static [&'static str] {
        const ALL: [&str; 6] =
            ["--save", "", "--appendonly", "no", "--enable-debug-command", "yes"];
        // Older servers always permit DEBUG and do not know the option.
        if self.version >= (7, 0) { &ALL } else { &ALL[..4] }
    }
}

/// Reads `Redis 7.0.15` from `Redis server v=7.0.15 sha=…`.
pub(crate) fn parse_name(text: &str) -> Option<String> {
    let (name, rest) = text.split_once(" server v=")?;
    Some(format!("{name} {}", rest.split_whitespace().next()?))
}

/// Reads `7.0` from `Redis server v=7.0.15 sha=…`.
pub(crate) fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split_once(" v=")?.1.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

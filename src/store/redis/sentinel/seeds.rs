//! How sentinels are named. No error shows a URL, as it may hold a password.

use deadpool_redis::redis::{ConnectionAddr, ConnectionInfo, RedisConnectionInfo};

use super::super::{
    RedisStore, RedisStoreBuilder,
    builder::Target,
    error::misconfigured,
    url::{self, wrong},
};
use crate::store::StoreError;

const PORT: u16 = 26379;
const FORM: &str = "[user][:password@]host[:port][,host[:port]…]/name[/database]";

/// Who is to be asked, and for whom.
#[derive(Clone)]
pub(in super::super) struct Seeds {
    /// One for each sentinel. Users, passwords and databases are those of the data servers.
    urls: Box<[Box<str>]>,
    pub(super) name: Box<str>,
}

/// What sentinels themselves want to be told.
#[derive(Clone, Default)]
pub(in super::super) struct Login {
    user: Option<Box<str>>,
    password: Option<Box<str>>,
}

/// Sentinel, with the cargo feature `redis-sentinel`.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use tollgate::RedisStore;
///
/// let urls = ["redis://s1.internal", "redis://s2.internal", "redis://s3.internal"];
/// let store = RedisStore::sentinel(urls, "mymaster").connect().await?;
///
/// let url = "redis+sentinel://:secret@s1.internal,s2.internal,s3.internal/mymaster/2";
/// let same = RedisStore::builder(url).sentinel_password("other secret").connect().await?;
/// # Ok(()) }
/// ```
impl RedisStore {
    /// A store on the server that these sentinels call the primary of that name. It follows when they
    /// name another.
    ///
    /// URLs are those of [`builder`](Self::builder), with the port 26379 where they name none. A
    /// user, a password and a database in them are those of the data servers, and stand in the first URL
    /// or alike in several; `rediss://` is TLS to all of them, whose certificates must be for the names
    /// or addresses that sentinels announce. The same in one URL is
    /// `redis+sentinel://[user][:password@]host[:port][,host[:port]…]/name[/database]`, or
    /// `rediss+sentinel://`.
    ///
    /// Name all sentinels: those that are not named are not asked.
    pub fn sentinel<I>(urls: I, name: impl AsRef<str>) -> RedisStoreBuilder
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let urls = urls.into_iter().map(|url| url.as_ref().into()).collect();
        RedisStoreBuilder::new(Target::Sentinels(Seeds { urls, name: name.as_ref().into() }))
    }
}

impl RedisStoreBuilder {
    /// The password that sentinels themselves want, if they do.
    pub fn sentinel_password(mut self, password: impl Into<String>) -> Self {
        self.sentinel.password = Some(password.into().into());
        self
    }

    /// The user that sentinels know, with a [`sentinel_password`](Self::sentinel_password). Default: the
    /// default user.
    pub fn sentinel_user(mut self, user: impl Into<String>) -> Self {
        self.sentinel.user = Some(user.into().into());
        self
    }
}

impl Login {
    pub(in super::super) const fn is_set(&self) -> bool {
        self.user.is_some() || self.password.is_some()
    }

    pub(super) fn settings(&self) -> Result<RedisConnectionInfo, StoreError> {
        let mut settings = RedisConnectionInfo::default();
        match (&self.user, &self.password) {
            (Some(_), None) => {
                return Err(misconfigured("sentinels have a user, but no password".to_owned()));
            }
            (user, Some(password)) => {
                if let Some(user) = user {
                    settings = settings.set_username(user);
                }
                settings = settings.set_password(password);
            }
            (None, None) => {}
        }
        Ok(settings)
    }
}

impl Seeds {
    /// Those that a URL names, if its scheme says so.
    pub(in super::super) fn in_url(url: &str) -> Result<Option<Self>, StoreError> {
        let Some((scheme, rest)) = url::of_sentinels(url) else { return Ok(None) };
        let form = |fault| wrong(format!("{fault}; it has the form `{scheme}://{FORM}`"));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, database) = path.split_once('/').unwrap_or((path, ""));
        if name.is_empty() {
            return Err(form("has no name of a primary"));
        }
        if authority.matches('@').count() > 1 {
            return Err(form(
                "has more than one `@`: the login stands once, before the first host",
            ));
        }
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (format!("{login}@"), hosts),
            None => (String::new(), authority),
        };
        let plain = scheme.trim_end_matches("+sentinel");
        let mut urls = Vec::new();
        for host in hosts.split(',') {
            if host.is_empty() {
                return Err(form("has no host where a sentinel should be"));
            }
            urls.push(format!("{plain}://{login}{host}/{database}").into());
        }
        Ok(Some(Self { urls: urls.into(), name: name.into() }))
    }

    /// The sentinels, with the login of the data servers.
    pub(super) fn infos(&self) -> Result<Vec<ConnectionInfo>, StoreError> {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if self.name.is_empty() || !self.name.bytes().all(known) {
            // It may be a part of a password, so it is not shown.
            return Err(misconfigured(
                "the name of the primary: it must be of letters, digits, `.`, `-` and `_`".into(),
            ));
        }
        let infos = self.urls.iter().map(|url| url::connection_info(&with_port(url)));
        let mut infos = infos.collect::<Result<Vec<_>, _>>()?;
        let Some(first) = infos.first() else {
            return Err(misconfigured("no sentinel is named".to_owned()));
        };
        let (first, login) = (first.addr().clone(), first.redis_settings().clone());
        for info in &infos {
            let told = info.redis_settings();
            let silent = told.username().is_none() && told.password().is_none() && told.db() == 0;
            let same = told.username() == login.username()
                && told.password() == login.password()
                && told.db() == login.db();
            if !silent && !same {
                return Err(misconfigured(
                    "the URLs of the sentinels differ in the user, password or database, which are \
                     those of the data servers"
                        .to_owned(),
                ));
            }
            if matches!(info.addr(), ConnectionAddr::Unix(_)) {
                return Err(misconfigured("a sentinel has no socket of the system".to_owned()));
            }
            if std::mem::discriminant(info.addr()) != std::mem::discriminant(&first) {
                return Err(misconfigured("some sentinels have TLS and others not".to_owned()));
            }
        }
        for info in &mut infos {
            *info = info.clone().set_redis_settings(login.clone());
        }
        Ok(infos)
    }
}

/// The URL of a sentinel, which has another port than other servers where it names none.
fn with_port(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let host = &url[start + url[start..end].rfind('@').map_or(0, |at| at + 1)..end];
    let behind_brackets = &host[host.rfind(']').unwrap_or_default()..];
    if host.is_empty() || behind_brackets.contains(':') {
        url.to_owned()
    } else {
        format!("{}:{PORT}{}", &url[..end], &url[end..])
    }
}

//! Fetching a key set.

use std::{error::Error, path::PathBuf, sync::Arc};

use axum::{
    body::Bytes,
    http::{
        Request, StatusCode, Uri,
        header::{ACCEPT, USER_AGENT},
    },
};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::task::spawn_blocking;
use tollgate::auth::JwtKeys;

use super::settings::{Location, Settings};
use crate::{
    file,
    tls::{self, Trust},
};

/// Bytes that a key set may have: enough for a thousand keys.
const MOST: u64 = 1 << 20;

/// What keys are fetched from.
pub(super) enum Source {
    Url(Box<Client<HttpsConnector<HttpConnector>, Empty<Bytes>>>, Uri),
    File(PathBuf),
}

impl Source {
    pub(super) fn new(settings: &Settings) -> Result<Self, tls::Fault> {
        let trust = Trust::new(settings.location.is_tls(), settings.ca.as_deref())?;
        let url = match &settings.location {
            Location::Url(url) => url.clone(),
            Location::File(path) => return Ok(Self::File(path.clone())),
        };
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        let connector = HttpsConnector::from((http, Arc::new(trust.config("http/1.1")?)));
        // Asked too seldom for a connection to be kept.
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_max_idle_per_host(0);
        Ok(Self::Url(Box::new(client.build(connector)), url))
    }

    /// The keys that are there now, or why there are none.
    pub(super) async fn keys(&self) -> Result<JwtKeys, String> {
        let bytes = match self {
            Self::Url(client, url) => {
                let request = Request::get(url)
                    .header(ACCEPT, "application/jwk-set+json, application/json")
                    .header(USER_AGENT, "tollgate")
                    .body(Empty::new())
                    .map_err(|error| chain(&error))?;
                let response = client.request(request).await.map_err(|error| chain(&error))?;
                let status = response.status();
                if status.is_redirection() {
                    return Err(format!("it answers {status}, and redirects are not followed"));
                }
                if status != StatusCode::OK {
                    return Err(format!("it answers {status} instead of 200 OK"));
                }
                let most = usize::try_from(MOST).unwrap_or(usize::MAX);
                let body = Limited::new(response.into_body(), most).collect().await;
                body.map_err(|error| {
                    if error.is::<LengthLimitError>() { too_large() } else { chain(&*error) }
                })?
                .to_bytes()
                .into()
            }
            Self::File(path) => {
                let path = path.clone();
                let read = spawn_blocking(move || file::read(&path, MOST)).await;
                read.map_err(|error| chain(&error))?.map_err(|error| chain(&error))?
            }
        };
        let text = String::from_utf8(bytes).map_err(|_| "it is no text")?;
        JwtKeys::jwks(text).check().map_err(|error| error.to_string())
    }
}

fn too_large() -> String {
    format!("it has more than {MOST} bytes")
}

fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::{
        authority::Authority,
        jwks::issuer::{Issuer, answer, set},
    };

    async fn fetched(settings: Settings) -> Result<(), String> {
        Source::new(&settings).unwrap().keys().await.map(drop)
    }

    #[tokio::test]
    async fn answers_that_are_no_key_sets() {
        let json = |body: &str| answer("200 OK", body);
        let large = format!("{}{}", set(&["a"]), " ".repeat(1 << 20));
        for (answer, fault) in [
            (json(&set(&["a"])), None),
            // Not within the bound by what it says of itself.
            (format!("HTTP/1.1 200 OK\r\n\r\n{}", set(&["a"])), None),
            (json(""), Some("this is no JSON Web Key Set: EOF")),
            (json("<html>"), Some("this is no JSON Web Key Set")),
            (json(r#"{"keys":[]}"#), Some("there is no key")),
            (json(&set(&["a", "a"])), Some("have the name \"a\"")),
            (json(&large), Some("it has more than 1048576 bytes")),
            (format!("HTTP/1.1 200 OK\r\n\r\n{large}"), Some("it has more than 1048576 bytes")),
            (answer("500 Internal Server Error", &set(&["a"])), Some("500 Internal Server Error")),
            (answer("204 No Content", ""), Some("204 No Content instead of 200")),
            (
                answer("302 Found\r\nLocation: /other", &set(&["a"])),
                Some("302 Found, and redirects are not followed"),
            ),
            ("SSH-2.0-x\r\n".to_owned(), Some("invalid HTTP")),
            (String::new(), Some("connection closed")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{".to_owned(), Some("body")),
        ] {
            let issuer = Issuer::start(&answer).await;
            let fetched = fetched(issuer.settings()).await;
            let head = answer.lines().take(3).collect::<Vec<_>>();
            match (&fetched, fault) {
                (Ok(()), None) => {}
                (Err(cause), Some(fault)) => assert!(cause.contains(fault), "{head:?}: {cause}"),
                _ => panic!("{head:?}: {fetched:?}"),
            }
        }
    }

    #[tokio::test]
    async fn what_is_asked() {
        let issuer = Issuer::start(&answer("200 OK", &set(&["a"]))).await;
        fetched(issuer.settings()).await.unwrap();
        let head = issuer.heard().to_ascii_lowercase();
        assert!(head.starts_with("get /keys?tenant=1 http/1.1\r\n"), "{head}");
        assert!(head.contains(&format!("host: {}\r\n", issuer.address)), "{head}");
        assert!(head.contains("accept: application/jwk-set+json"), "{head}");
    }

    #[tokio::test]
    async fn issuers_are_verified() {
        let (right, other) = (Authority::new("the right one"), Authority::new("another"));
        let text = answer("200 OK", &set(&["a"]));
        let issuer = Issuer::secure(right.acceptor("localhost", &["http/1.1"]), &text).await;
        let ask = |host: &str, authority: &Authority| {
            let url = format!("https://{host}:{}/keys", issuer.address.port());
            let ca = Some(authority.path().to_owned());
            fetched(Settings { ca, ..Settings::new(&url).unwrap() })
        };
        ask("localhost", &right).await.unwrap();
        let fault = ask("localhost", &other).await.unwrap_err();
        assert!(fault.contains("UnknownIssuer"), "{fault}");
        let fault = ask("127.0.0.1", &right).await.unwrap_err();
        assert!(fault.contains("not valid for name"), "{fault}");
        assert_eq!(issuer.asked(), 1);
    }

    #[tokio::test]
    async fn files() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let ask = |path: &str| fetched(Settings::new(path).unwrap());
        assert!(ask(&path).await.unwrap_err().contains("no JSON Web Key Set"));
        file.write_all(set(&["a"]).as_bytes()).unwrap();
        ask(&path).await.unwrap();
        file.write_all(&[b' '; 1 << 20]).unwrap();
        assert!(ask(&path).await.unwrap_err().contains("more than 1048576 bytes"));
        assert!(ask("/nowhere/keys").await.unwrap_err().contains("No such file"));
        assert_eq!(ask("/dev").await.unwrap_err(), "it is no file");
    }
}

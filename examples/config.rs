//! Policies from a file, which is read again when it changes.
//!
//! ```sh
//! cargo run --example config --features config
//! for i in 1 2 3 4 5 6; do curl -i http://127.0.0.1:3000/; done
//! sed -i 's|"5/10s"|"9/10s"|' examples/config.toml
//! ```

use std::{
    error::Error,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use axum::{Router, routing::get};
use tollgate::{
    Limiter, MemoryStore, PolicyHandle, RateLimitLayer, Store,
    config::{self, Changes, ConfigError, Extractors},
    key,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut file = PoliciesFile::open("examples/config.toml")?;
    let app = app(&file.policies, MemoryStore::new());
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            match file.refresh() {
                Some(Ok(changes)) => println!("policies read again; {changes}"),
                Some(Err(error)) => eprintln!("{error}; the policies stay as they were"),
                None => {}
            }
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("try: curl -i http://{}/", listener.local_addr()?);
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

fn app(policies: &PolicyHandle, store: impl Store) -> Router {
    Router::new()
        .route("/", get(|| async { "hello\n" }))
        .route("/login", get(|| async { "POST it\n" }).post(|| async { "welcome\n" }))
        .layer(RateLimitLayer::with_policies(policies, &Limiter::new(store)))
}

/// What the file may count by, beside what is built in.
fn extractors() -> Extractors {
    Extractors::new()
        .with("tenant", key::from_fn(|head| head.header("x-tenant").map(str::to_lowercase)))
}

/// Policies, and the file that they come from.
struct PoliciesFile {
    path: PathBuf,
    policies: PolicyHandle,
    seen: Option<(SystemTime, u64)>,
}

impl PoliciesFile {
    fn open(path: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let path = path.into();
        // Before it is read: what is written meanwhile is seen later.
        let seen = version(&path);
        let policies = PolicyHandle::new(config::from_file(&path, &extractors())?);
        Ok(Self { path, policies, seen })
    }

    /// Reads the file again, if it is another one than before.
    fn refresh(&mut self) -> Option<Result<Changes, ConfigError>> {
        let now = version(&self.path);
        if now == self.seen {
            return None;
        }
        self.seen = now;
        Some(config::reload(&self.policies, &self.path, &extractors()))
    }
}

fn version(path: &Path) -> Option<(SystemTime, u64)> {
    let file = fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, extract::connect_info::MockConnectInfo, http::Request};
    use tollgate::ManualClock;
    use tower::ServiceExt as _;

    use super::*;

    async fn passing(app: &Router) -> usize {
        for passed in 0..1_000 {
            let request = Request::new(Body::empty());
            if app.clone().oneshot(request).await.unwrap().status() != 200 {
                return passed;
            }
        }
        1_000
    }

    #[tokio::test]
    async fn a_file_that_changes_changes_the_limits_unless_it_is_bad() {
        let text = include_str!("config.toml");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limits.toml");
        fs::write(&path, text).unwrap();
        let mut file = PoliciesFile::open(&path).unwrap();
        let store = MemoryStore::builder().clock(ManualClock::new()).build();
        let peer = SocketAddr::from(([192, 0, 2, 7], 4711));
        let app = app(&file.policies, store).layer(MockConnectInfo(peer));
        assert_eq!(passing(&app).await, 5);
        assert!(file.refresh().is_none());

        // Twice as much, of which all was used.
        fs::write(&path, text.replace("\"5/10s\"", "\"10/10s\"")).unwrap();
        assert_eq!(file.refresh().unwrap().unwrap().to_string(), "changed: api");
        assert_eq!(passing(&app).await, 0);

        fs::write(&path, text.replace("\"5/10s\"", "\"lots/10s\"")).unwrap();
        let error = file.refresh().unwrap().unwrap_err();
        assert_eq!(error.line(), Some(19));
        assert!(file.refresh().is_none());
        let policies = file.policies.load();
        let requests = policies.policy("api").and_then(|api| api.limit("requests")).unwrap();
        assert_eq!(requests.quota().quantity(), 10);
    }
}

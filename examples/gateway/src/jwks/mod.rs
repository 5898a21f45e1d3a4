//! Keys that an issuer publishes as a JSON Web Key Set (RFC 7517), at a URL or in a file.
//!
//! They are fetched when the gateway starts, again from time to time, and when a token names a key
//! that is not there, which is how issuers rotate keys. Requests go on with the keys of before while
//! that is so, and for a time if it fails. Anybody can name keys: however many do, there is one fetch
//! at a time, and a pause after it in which unknown keys are refused at once.

mod cache;
mod fetch;
#[cfg(test)]
mod issuer;
mod settings;

use std::{future::ready, sync::Arc};

use tokio::task::AbortHandle;
#[cfg(test)]
use tollgate::auth::KeySourceError;
use tollgate::auth::{JwtAlgorithm, KeyLookup, KeySource};

pub(crate) use self::settings::Settings;
use self::{
    cache::{Cache, Found},
    fetch::Source,
};

/// A key set that is kept up to date for as long as a clone of this is there.
#[derive(Clone, Debug)]
pub(crate) struct Jwks(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    cache: Arc<Cache>,
    task: AbortHandle,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Jwks {
    fn start(settings: Settings, source: Source) -> Self {
        let cache = Arc::new(Cache::new(settings));
        let task = tokio::spawn(Arc::clone(&cache).keep(source)).abort_handle();
        Self(Arc::new(Kept { cache, task }))
    }

    /// Waits until keys were fetched, or could not be.
    #[cfg(test)]
    pub(crate) async fn ready(&self) -> Result<(), KeySourceError> {
        self.0.cache.ready().await
    }
}

impl KeySource for Jwks {
    fn find(&self, algorithm: JwtAlgorithm, kid: Option<&str>) -> KeyLookup {
        match self.0.cache.find(algorithm, kid) {
            Found::Now(Ok(key)) => KeyLookup::Known(key),
            Found::Now(Err(error)) => KeyLookup::later(ready(Err(error))),
            Found::Then(mut ended) => {
                // Which keeps the task, though others may let go.
                let (jwks, kid) = (self.clone(), kid.map(str::to_owned));
                KeyLookup::later(async move {
                    let _ = ended.changed().await;
                    jwks.0.cache.settled(algorithm, kid.as_deref())
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use futures_util::future::join_all;
    use tokio::time::{advance, timeout};

    use super::{
        issuer::{Issuer, Still, answer, eventually, set},
        *,
    };

    const SECOND: Duration = Duration::from_secs(1);

    /// Whether there is such a key, or whether nobody can tell.
    type Told = Result<bool, String>;

    async fn told(lookup: KeyLookup) -> Told {
        match lookup {
            KeyLookup::Known(key) => Ok(key.is_some()),
            KeyLookup::Later(later) => {
                later.await.map(|key| key.is_some()).map_err(|error| error.to_string())
            }
        }
    }

    fn find(jwks: &Jwks, kid: &str) -> KeyLookup {
        jwks.find(JwtAlgorithm::Hs256, Some(kid))
    }

    /// What is told without waiting.
    fn at_once(jwks: &Jwks, kid: &str) -> Option<bool> {
        match find(jwks, kid) {
            KeyLookup::Known(key) => Some(key.is_some()),
            KeyLookup::Later(_) => None,
        }
    }

    async fn issuer(names: &[&str]) -> Issuer {
        Issuer::start(&answer("200 OK", &set(names))).await
    }

    fn fails(issuer: &Issuer) {
        issuer.answer(&answer("500 Internal Server Error", ""));
    }

    /// Lets time pass, and the fetch begin that this causes, the `nth`.
    async fn due(time: Duration, issuer: &Issuer, nth: usize) {
        // Timers have whole milliseconds, and are late rather than early.
        advance(time + Duration::from_millis(1)).await;
        eventually(|| issuer.asked() == nth).await;
    }

    /// The same, and lets it end.
    async fn pass(time: Duration, (jwks, issuer): (&Jwks, &Issuer), nth: usize) {
        due(time, issuer, nth).await;
        let _ = jwks.ready().await;
    }

    #[tokio::test]
    async fn keys_are_there_once_they_were_fetched() {
        let issuer = issuer(&["a", "b"]).await;
        let jwks = issuer.settings().build().unwrap();
        // The first requests wait.
        assert_eq!(told(find(&jwks, "a")).await, Ok(true));
        assert_eq!((at_once(&jwks, "a"), at_once(&jwks, "b")), (Some(true), Some(true)));
        // One of two, and one of another kind.
        assert_eq!(told(jwks.find(JwtAlgorithm::Hs256, None)).await, Ok(false));
        assert_eq!(told(jwks.find(JwtAlgorithm::Es256, Some("a"))).await, Ok(false));
        assert_eq!(issuer.asked(), 2);
    }

    #[tokio::test]
    async fn a_token_without_a_name_is_of_the_only_key() {
        let issuer = issuer(&["a"]).await;
        let jwks = issuer.settings().build().unwrap();
        jwks.ready().await.unwrap();
        assert_eq!(told(jwks.find(JwtAlgorithm::Hs256, None)).await, Ok(true));
        assert_eq!(told(jwks.find(JwtAlgorithm::Es256, None)).await, Ok(false));
        assert_eq!(issuer.asked(), 1);
    }

    #[tokio::test]
    async fn a_new_key_is_found_by_its_name() {
        let issuer = issuer(&["old"]).await;
        let jwks = issuer.settings().build().unwrap();
        jwks.ready().await.unwrap();
        issuer.answer(&answer("200 OK", &set(&["new"])));
        assert_eq!(at_once(&jwks, "old"), Some(true));
        assert_eq!(told(find(&jwks, "new")).await, Ok(true));
        assert_eq!(at_once(&jwks, "new"), Some(true));
        assert_eq!((at_once(&jwks, "old"), issuer.asked()), (Some(false), 2));
    }

    #[tokio::test]
    async fn invented_names_cause_one_fetch_in_a_pause() {
        let _still = Still::begin();
        let issuer = issuer(&["a"]).await;
        let jwks = issuer.settings().build().unwrap();
        jwks.ready().await.unwrap();
        for round in 2..5 {
            for number in 0..1_000 {
                assert_eq!(told(find(&jwks, &format!("{number}"))).await, Ok(false));
            }
            assert_eq!(issuer.asked(), round);
            advance(29 * SECOND).await;
            assert_eq!(at_once(&jwks, "b"), Some(false));
            advance(SECOND).await;
        }
    }

    #[tokio::test]
    async fn who_waits_shares_the_fetch() {
        let issuer = issuer(&["a"]).await;
        let jwks = issuer.settings().build().unwrap();
        jwks.ready().await.unwrap();
        issuer.hold(true);
        issuer.answer(&answer("200 OK", &set(&["a", "b"])));
        let waiting: Vec<_> = (0..100).map(|n| told(find(&jwks, ["b", "c"][n % 2]))).collect();
        eventually(|| issuer.asked() == 2).await;
        assert_eq!(at_once(&jwks, "a"), Some(true), "who need not wait does not");
        issuer.hold(false);
        let told = join_all(waiting).await;
        assert!((0..100).all(|n| told[n] == Ok(n % 2 == 0)), "{told:?}");
        assert_eq!(issuer.asked(), 2);
    }

    #[tokio::test]
    async fn keys_are_fetched_again_while_they_are_used() {
        let _still = Still::begin();
        let issuer = issuer(&["a"]).await;
        let jwks = issuer.settings().build().unwrap();
        jwks.ready().await.unwrap();
        issuer.answer(&answer("200 OK", &set(&["b"])));
        advance(599 * SECOND).await;
        assert_eq!((at_once(&jwks, "a"), issuer.asked()), (Some(true), 1));
        issuer.hold(true);
        due(SECOND, &issuer, 2).await;
        assert_eq!(at_once(&jwks, "a"), Some(true));
        issuer.hold(false);
        jwks.ready().await.unwrap();
        assert_eq!((at_once(&jwks, "a"), at_once(&jwks, "b")), (None, Some(true)));
    }

    #[tokio::test]
    async fn old_keys_are_used_while_there_are_no_new_ones_and_not_for_ever() {
        let _still = Still::begin();
        let issuer = issuer(&["a"]).await;
        let stale = 700 * SECOND;
        let jwks = Settings { stale, ..issuer.settings() }.build().unwrap();
        jwks.ready().await.unwrap();
        fails(&issuer);
        pass(600 * SECOND, (&jwks, &issuer), 2).await;
        assert_eq!(at_once(&jwks, "a"), Some(true));
        // It is tried again in 1, 2, 4 … seconds, and not for who asks.
        for (nth, pause) in [(3, 1), (4, 2), (5, 4), (6, 8), (7, 16), (8, 32)] {
            let unknown = told(find(&jwks, "b")).await.unwrap_err();
            assert!(unknown.ends_with("500 Internal Server Error instead of 200 OK"), "{unknown}");
            assert!(unknown.contains(&format!("{}/keys:", issuer.address)), "{unknown}");
            pass(pause * SECOND, (&jwks, &issuer), nth).await;
        }
        assert_eq!(at_once(&jwks, "a"), Some(true));
        advance(36 * SECOND).await;
        assert_eq!(at_once(&jwks, "a"), Some(true));
        advance(SECOND).await;
        assert!(told(find(&jwks, "a")).await.unwrap_err().contains("500 Internal"));
        issuer.answer(&answer("200 OK", &set(&["a"])));
        pass(60 * SECOND, (&jwks, &issuer), 9).await;
        assert_eq!(at_once(&jwks, "a"), Some(true));
    }

    #[tokio::test]
    async fn an_issuer_that_hangs_is_not_waited_for() {
        let _still = Still::begin();
        let issuer = issuer(&["a"]).await;
        issuer.hold(true);
        let jwks = issuer.settings().build().unwrap();
        let waiting = told(find(&jwks, "a"));
        eventually(|| issuer.asked() == 1).await;
        advance(4_999 * SECOND / 1_000).await;
        assert!(at_once(&jwks, "a").is_none());
        advance(SECOND / 500).await;
        assert!(waiting.await.unwrap_err().contains("no answer within 5s"));
        assert!(told(find(&jwks, "a")).await.is_err(), "and nobody waits in the pause");
        issuer.hold(false);
        pass(SECOND, (&jwks, &issuer), 2).await;
        assert_eq!(at_once(&jwks, "a"), Some(true));
    }

    #[tokio::test]
    async fn nothing_is_fetched_for_nobody() {
        let _still = Still::begin();
        let issuer = issuer(&["a"]).await;
        let jwks = issuer.settings().build().unwrap();
        jwks.ready().await.unwrap();
        issuer.hold(true);
        let waiting = told(find(&jwks, "b"));
        let (task, cache) = (jwks.0.task.clone(), Arc::downgrade(&jwks.0.cache));
        // Who waits is told, though the settings have changed since.
        drop(jwks);
        eventually(|| issuer.asked() == 2).await;
        issuer.hold(false);
        assert_eq!(waiting.await, Ok(false));
        eventually(|| task.is_finished()).await;
        assert!(cache.upgrade().is_none());
        due(600 * SECOND, &issuer, 2).await;
    }

    #[tokio::test]
    async fn a_file_that_changes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, set(&["a"])).unwrap();
        let jwks = Settings::new(file.path().to_str().unwrap()).unwrap().build().unwrap();
        assert_eq!(told(find(&jwks, "a")).await, Ok(true));
        fs::write(&file, set(&["b"])).unwrap();
        let found = timeout(20 * SECOND, told(find(&jwks, "b"))).await;
        assert_eq!(found.unwrap(), Ok(true));
        assert_eq!(at_once(&jwks, "a"), Some(false), "within the pause");
    }
}

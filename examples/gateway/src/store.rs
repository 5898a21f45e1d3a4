//! Where limits are counted.

use tollgate::{Limiter, MemoryStore, RedisStore, StoreError, StoreErrorKind};

use crate::config::{Config, FileError};

fn wrong_url(config: &Config, error: &StoreError) -> FileError {
    config.fault_of_flag(config.file.redis.url.as_ref(), ["--redis", "redis.url"], error)
}

/// Whether the URL could be used, without a connection.
pub(crate) fn check(config: &Config) -> Result<(), FileError> {
    let Some(url) = &config.file.redis.url else { return Ok(()) };
    let store = RedisStore::builder(url.get_ref()).connect_lazy();
    store.map(drop).map_err(|error| wrong_url(config, &error))
}

/// A limiter over the Redis of the configuration, also if it cannot be reached yet: that may change, and
/// until then the policies say what happens.
pub(crate) async fn limiter(config: &Config) -> Result<Limiter, FileError> {
    let Some(url) = &config.file.redis.url else { return Ok(Limiter::new(MemoryStore::new())) };
    let builder = RedisStore::builder(url.get_ref());
    let store = match builder.clone().connect().await {
        Ok(store) => store,
        Err(error) => {
            // A wrong URL stays wrong.
            let store = builder.connect_lazy().map_err(|error| wrong_url(config, &error))?;
            let text = "Redis cannot be used yet; starting all the same, and trying again";
            if error.kind() == StoreErrorKind::Misconfigured {
                tracing::error!(%error, "{text}");
            } else {
                tracing::warn!(%error, "{text}");
            }
            store
        }
    };
    Ok(Limiter::new(store))
}

//! Limits without HTTP: a worker that sends mails.
//!
//! ```sh
//! cargo run --example no_http
//! ```

use std::{env, error::Error, sync::Arc};

use tollgate::{Key, Limit, Limiter, MemoryStore, Quota, RedisStore, Store};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store: Arc<dyn Store> = match env::var("REDIS_URL") {
        Ok(url) => Arc::new(RedisStore::connect(url).await?),
        Err(_) => Arc::new(MemoryStore::new()),
    };
    let limiter = Limiter::new(store);
    let per_user = Limit::new("mails", Quota::per_hour(3));
    let for_all = Limit::new("relay", Quota::per_second(10));
    for mail in 1..=4 {
        // Both are charged, or none is.
        let pairs = [(&per_user, Key::new("user", 42)), (&for_all, Key::new("relay", "smtp1"))];
        let decision = limiter.check_all(pairs).await?;
        match decision.retry_after() {
            None => println!("mail {mail}: sent, {} left", decision.remaining().unwrap_or(0)),
            Some(wait) => println!("mail {mail}: wait {} s", wait.as_secs_f64().ceil()),
        }
    }

    // A cost of 0 only looks.
    let look = per_user.clone().cost(0);
    let decision = limiter.check(&look, Key::new("user", 42)).await?;
    println!("user 42 has {} left", decision.remaining().unwrap_or(0));

    limiter.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs() {
        super::main().unwrap();
    }
}

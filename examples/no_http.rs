//! Limits without HTTP: a worker that sends mails.

use tollgate::{Key, Limit, Limiter, MemoryStore, Quota, RedisStore};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limiter = match std::env::var("REDIS_URL") {
        Ok(url) => Limiter::new(RedisStore::connect(url).await?),
        Err(_) => Limiter::new(MemoryStore::new()),
    };
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
    limiter.shutdown().await;
    Ok(())
}

//! A server may forget the script at any time.

use std::time::Duration;

use tollgate::{Limit, Limiter, Quota, RedisStore};

use crate::support::{Load, RedisServer};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgets_the_script_in_the_middle_of_load_fails_no_request() {
    let server = RedisServer::start().await;
    // The time to answer is not what this is about.
    let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(10));
    let limiter = Limiter::new(store.connect().await.expect("a server"));
    let limit = Limit::new("all", Quota::per_second(1_000_000));
    let load = Load::new(64).count(20_000).start(move |caller| {
        let (limiter, limit) = (limiter.clone(), limit.clone());
        async move {
            let key = format!("caller{caller}");
            match limiter.check(&limit, key).await {
                Ok(decision) if decision.is_allowed() => "allowed",
                Ok(_) => "denied",
                Err(error) => panic!("{error}"),
            }
        }
    });
    let flushing = async {
        loop {
            server.command(&["SCRIPT", "FLUSH"]);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let report = tokio::select! {
        report = load.finish() => report,
        () = flushing => unreachable!("it does not end"),
    };
    assert_eq!(report.phase("start").count("allowed"), 20_000);
    let info = server.command(&["INFO", "commandstats"]);
    assert!(info.contains("cmdstat_eval:"), "the server never had forgotten the script:\n{info}");
}

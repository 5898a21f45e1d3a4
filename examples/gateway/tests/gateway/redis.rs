//! Gateways that count in Redis.

use crate::{
    port::free_port,
    support::{Gateway, Redis, eventually, url},
};

#[test]
fn two_gateways_share_one_limit() {
    let (_redis, url) = Redis::start();
    let args = ["--limit", "5/h", "--redis", &url];
    let gateways = [Gateway::start(&args), Gateway::start(&args)];
    assert!(gateways[0].banner.contains("in Redis"), "{}", gateways[0].banner);
    for request in 0..5 {
        let response = gateways[request % 2].get("/");
        assert_eq!(response.status, 200);
        assert_eq!(response.number("x-ratelimit-remaining"), 4 - request as u64);
    }
    for gateway in &gateways {
        let response = gateway.get("/");
        assert_eq!(response.status, 429);
        assert!((600..=720).contains(&response.number("retry-after")), "{response:?}");
    }
}

/// It starts all the same, says so, lets requests pass, and counts from when Redis is there.
#[test]
fn a_redis_that_comes_later() {
    let port = free_port();
    let gateway = Gateway::start(&["--limit", "5/h", "--redis", &url(port)]);
    let response = gateway.get("/");
    assert_eq!(response.status, 200);
    assert_eq!(response.header("x-ratelimit-remaining"), None);
    assert!(response.body.contains("nobody counts"), "{}", response.body);
    assert_eq!(gateway.get("/healthz").status, 200);
    let unready = gateway.get("/readyz");
    assert_eq!(unready.status, 503);
    assert!(unready.body.contains("unreachable"), "{}", unready.body);

    let _redis = Redis::start_on(port);
    eventually(|| gateway.get("/").header("x-ratelimit-remaining").is_some());
    eventually(|| gateway.get("/readyz").status == 200);

    gateway.terminate();
    let (status, log) = gateway.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("Redis cannot be used yet"), "{log}");
}

#[test]
fn a_redis_that_goes_away() {
    let (redis, url) = Redis::start();
    let args = ["--limit", "4/h", "--redis", &url, "--on-failure"];
    let [open, closed, local] = ["allow", "deny", "local:0.5"].map(|how| {
        let gateway = Gateway::start(&[&args[..], &[how]].concat());
        assert_eq!(gateway.get("/").status, 200);
        gateway
    });
    redis.kill();

    for _ in 0..8 {
        assert_eq!(open.get("/").status, 200);
    }
    let denied = closed.get("/");
    assert_eq!(denied.status, 503);
    assert!((1..=3).contains(&denied.number("retry-after")), "{denied:?}");
    let statuses = [(); 3].map(|()| local.get("/").status);
    assert_eq!(statuses, [200, 200, 429], "half of the limit, in memory");
    for gateway in [&open, &closed, &local] {
        assert_eq!(gateway.get("/healthz").status, 200);
    }
}

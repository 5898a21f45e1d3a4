//! APIs whose callers are signed in.

use std::time::Duration;

use tollgate::{Decision, Timestamp};

use super::{of_all, world};
use crate::{
    config::world::{from, get, of_tier, request, saying},
    support::{number, secs},
};

#[tokio::test]
async fn github() {
    let mut world = world("github");
    let octo = of_tier(saying(get("/user"), "user", "octo"), "user");
    assert_eq!(world.passes(&get("/users/a")).await, 60);
    assert_eq!(world.tells(&get("/users/a")).await, "core");
    assert_eq!(world.status(&from(get("/users/a"), "192.0.2.8")).await, 200);

    // Looking is free.
    let look = saying(get("/rate_limit"), "user", "octo");
    for _ in 0..3 {
        let response = world.send(&of_tier(look.clone(), "user")).await;
        assert_eq!(number(&response, "x-ratelimit-remaining"), Some(5_000));
    }
    // 900 points a minute: reads take one, writes five.
    assert_eq!(world.passes(&octo).await, 900);
    assert_eq!(world.tells(&octo).await, "points");
    let write = of_tier(saying(request("PATCH", "/user"), "user", "octo"), "user");
    world.frees_after(&write, Duration::from_micros(333_334)).await;
    world.advance(60);
    assert_eq!(world.passes(&write).await, 180);

    let create = of_tier(saying(request("POST", "/gists"), "user", "hub"), "user");
    assert_eq!(world.passes(&create).await, 80);
    assert_eq!(world.tells(&create).await, "creations");
    world.frees_after(&create, Duration::from_millis(750)).await;

    // The hour is over.
    world.advance(3_600);
    assert_eq!(world.passes(&get("/users/a")).await, 60);
}

#[tokio::test]
async fn github_counts_5000_an_hour_by_user() {
    let mut world = world("github");
    let octo = of_tier(saying(get("/user"), "user", "octo"), "user");
    let mut passed = 0;
    // As fast as points allow.
    for _ in 0..10 {
        passed += world.passes(&octo).await;
        world.advance(60);
    }
    assert_eq!(passed, 5_000);
    assert_eq!(world.tells(&octo).await, "core");
    world.advance(3_600 - 600);
    assert_eq!(world.passes(&octo).await, 900);
}

#[tokio::test]
async fn lets_encrypt() {
    let mut world = world("lets-encrypt");
    let order = |account: &str, domain: &str| {
        of_all(request("POST", "/acme/new-order"), &[("account", account), ("domain", domain)])
    };
    for at in 0..300 {
        assert_eq!(world.status(&order("a", &format!("{at}.org"))).await, 200);
    }
    assert_eq!(world.tells(&order("a", "300.org")).await, "orders");
    world.frees_after(&order("a", "301.org"), secs(36)).await;
    // By domain, of whichever account; an order is about all of its domains or none.
    for at in 0..50 {
        assert_eq!(world.status(&order(&format!("b{at}"), "x.org y.org")).await, 200);
    }
    assert_eq!(world.tells(&order("c", "x.org z.org")).await, "certificates");
    assert_eq!(world.passes(&order("c", "z.org")).await, 50);
    world.frees_after(&order("d", "x.org"), secs(7 * 86_400 / 50)).await;

    let account = |address: &str| from(request("POST", "/acme/new-acct"), address);
    assert_eq!(world.passes(&account("192.0.2.1")).await, 10);
    let mut passed = 0;
    for network in 0..60 {
        passed += world.passes(&account(&format!("2001:db8:1:{network}::1"))).await;
    }
    assert_eq!(passed, 500);
    assert_eq!(world.tells(&account("2001:db8:1:99::1")).await, "accounts-by-network");
    assert_eq!(world.passes(&account("2001:db8:2::1")).await, 10);

    let validate = |account: &str, host: &str| {
        of_all(request("POST", "/acme/chall/7"), &[("account", account), ("host", host)])
    };
    assert_eq!(world.passes(&validate("a", "x.org")).await, 5);
    assert_eq!(world.passes(&validate("a", "y.org")).await, 5);
    assert_eq!(world.passes(&validate("b", "x.org")).await, 5);
    world.frees_after(&validate("a", "x.org"), secs(720)).await;
}

#[tokio::test]
async fn crates_io() {
    let mut world = world("crates-io");
    let publish = |what: &str, user: &str| {
        saying(request("PUT", &format!("/api/v1/crates/{what}/serde")), "user", user)
    };
    assert_eq!(world.passes(&publish("new", "1")).await, 5);
    world.frees_after(&publish("new", "1"), secs(600)).await;
    assert_eq!(world.passes(&publish("update", "1")).await, 30);
    world.frees_after(&publish("update", "1"), secs(60)).await;
    assert_eq!(world.passes(&publish("new", "2")).await, 5);
    // More until July.
    assert_eq!(world.passes(&publish("new", "42")).await, 30);
    world.frees_after(&publish("new", "42"), secs(60)).await;
    world.advance(182 * 86_400);
    assert_eq!(world.passes(&publish("new", "42")).await, 5);
}

#[tokio::test]
async fn aws_api_gateway() {
    let mut world = world("aws-api-gateway");
    let call = |key: &str| saying(get("/pets"), "x-api-key", key);
    assert_eq!(world.status(&get("/pets")).await, 403);
    assert_eq!(world.passes(&call("one")).await, 200);
    assert_eq!(world.tells(&call("one")).await, "throttle");
    world.frees_after(&call("one"), Duration::from_millis(10)).await;
    assert_eq!(world.passes(&call("two")).await, 200);
    // A million in January 2025, and anew in February.
    world.advance(1);
    let response = world.send(&call("one")).await;
    let decision = response.extensions().get::<Decision>().unwrap();
    assert!(decision.charge("quota", 1_000_000 - 202).await.unwrap().is_allowed());
    let denied = world.send(&call("one")).await;
    assert_eq!(
        (number(&denied, "x-ratelimit-limit"), denied.status().as_u16()),
        (Some(1_000_000), 429)
    );
    assert_eq!(world.tells(&call("one")).await, "quota");
    world.clock.set(Timestamp::from_micros(1_738_368_000_000_000 - 1));
    assert_eq!(world.status(&call("one")).await, 429);
    world.clock.set(Timestamp::from_micros(1_738_368_000_000_000));
    assert_eq!(world.status(&call("one")).await, 200);
}

#[tokio::test]
async fn okta() {
    let mut world = world("okta");
    let call = |path: &str, organisation: &str, user: &str| {
        of_all(get(path), &[("organisation", organisation), ("user", user)])
    };
    assert_eq!(world.passes(&call("/api/v1/users/7", "acme", "ann")).await, 40);
    assert_eq!(world.passes(&call("/api/v1/users/8", "acme", "ann")).await, 0);
    assert_eq!(world.passes(&call("/api/v1/groups", "acme", "ann")).await, 40);
    world.frees_after(&call("/api/v1/users/7", "acme", "ann"), secs(10) / 40).await;
    let mut passed = 81;
    for user in 0..20 {
        passed += world.passes(&call("/api/v1/users", "acme", &user.to_string())).await;
    }
    assert_eq!(passed, 600);
    assert_eq!(world.tells(&call("/api/v1/users", "acme", "bob")).await, "organisation");
    assert_eq!(world.passes(&call("/api/v1/users", "other", "bob")).await, 40);
    world.advance(60);
    assert_eq!(world.passes(&call("/api/v1/users", "acme", "carol")).await, 40);
}

#[tokio::test]
async fn discord() {
    let mut world = world("discord");
    let send = |bot: &str, channel: u32| {
        saying(request("POST", &format!("/channels/{channel}/messages")), "bot", bot)
    };
    assert_eq!(world.passes(&send("a", 1)).await, 5);
    assert_eq!(world.tells(&send("a", 1)).await, "channel");
    assert_eq!(world.passes(&send("a", 2)).await, 5);
    assert_eq!(world.passes(&saying(get("/users/@me"), "bot", "a")).await, 40);
    assert_eq!(world.tells(&send("a", 3)).await, "global");
    assert_eq!(world.passes(&send("b", 1)).await, 5);
    world.frees_after(&send("a", 1), secs(1)).await;
}

#[tokio::test]
async fn jira() {
    let mut world = world("jira");
    let call = |method: &str, issue: &str, tenant: &str| {
        let request = request(method, &format!("/rest/api/3/issue/{issue}"));
        of_all(request, &[("app", "one"), ("tenant", tenant)])
    };
    assert_eq!(world.passes(&call("PUT", "A-1", "acme")).await, 20);
    assert_eq!(world.tells(&call("POST", "A-1", "acme")).await, "issue");
    assert_eq!(world.passes(&call("PUT", "A-2", "acme")).await, 20);
    assert_eq!(world.passes(&call("PUT", "A-1", "other")).await, 20);
    // Reading is a policy of its own.
    assert_eq!(world.passes(&call("GET", "A-1", "acme")).await, 100);
    // 100 in 30 seconds, and what comes back meanwhile: after 14 seconds 146.
    let mut passed = 20;
    for _ in 0..6 {
        world.advance(2);
        passed += world.passes(&call("PUT", "A-1", "acme")).await;
    }
    assert_eq!(passed, 140);
    world.advance(2);
    assert_eq!(world.passes(&call("PUT", "A-1", "acme")).await, 6);
    assert_eq!(world.tells(&call("PUT", "A-1", "acme")).await, "issue-longer");
}

#[tokio::test]
async fn stripe() {
    let mut world = world("stripe");
    let pay = |mode: &str, payment: u32| {
        let request = request("POST", &format!("/v1/payment_intents/{payment}"));
        of_all(request, &[("account", "acct"), ("mode", mode)])
    };
    let other = |path: &str| of_all(get(path), &[("account", "acct"), ("mode", "live")]);
    assert_eq!(world.passes(&pay("live", 1)).await, 10);
    assert_eq!(world.tells(&pay("live", 1)).await, "object");
    assert_eq!((world.passes(&pay("live", 2)).await, world.passes(&pay("live", 3)).await), (10, 5));
    assert_eq!(world.tells(&pay("live", 4)).await, "endpoint");
    assert_eq!(world.passes(&pay("test", 1)).await, 10);
    let paths = ["/v1/customers", "/v1/customers/7", "/v1/charges"];
    for path in paths {
        assert_eq!(world.passes(&other(path)).await, 25);
    }
    world.frees_after(&other("/v1/charges"), secs(1) / 25).await;
}

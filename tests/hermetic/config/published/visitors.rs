//! Limits by address, and those of who signs in.

use std::time::Duration;

use super::{of_all, world};
use crate::{
    config::world::{from, get, of_tier, request, saying},
    support::{number, secs},
};

#[tokio::test]
async fn docker_hub() {
    let mut world = world("docker-hub");
    let path = "/v2/library/redis/manifests/7";
    assert_eq!(world.passes(&get(path)).await, 10);
    world.frees_after(&get(path), secs(360)).await;
    // A head is free, and tells what is left.
    let head = world.send(&request("HEAD", path)).await;
    assert_eq!((head.status().as_u16(), number(&head, "x-ratelimit-remaining")), (200, Some(0)));
    assert_eq!(world.passes(&from(get(path), "2001:db8::1")).await, 10);
    assert_eq!(world.passes(&from(get(path), "2001:db8::2")).await, 0);
    let ann = saying(get(path), "user", "ann");
    assert_eq!(world.passes(&of_tier(ann.clone(), "personal")).await, 100);
    world.frees_after(&of_tier(ann.clone(), "personal"), secs(216)).await;
    assert_eq!(world.passes(&of_tier(ann, "pro")).await, 2_000);
    // Layers are no pulls.
    assert_eq!(world.passes(&get("/v2/library/redis/blobs/sha256:0")).await, 2_000);
}

#[tokio::test]
async fn cloudflare() {
    let mut world = world("cloudflare");
    let call = |user: &str, client: &str| {
        let request = from(get("/client/v4/zones"), "10.1.2.3");
        of_all(request, &[("user", user), ("x-forwarded-for", client)])
    };
    let mut passed = 0;
    for client in 0..10 {
        passed += world.passes(&call("ann", &format!("192.0.2.{client}"))).await;
    }
    assert_eq!(passed, 1_200);
    assert_eq!(world.tells(&call("ann", "192.0.2.99")).await, "user");
    // Blocked for five minutes, though one comes back each quarter of a second.
    world.frees_after(&call("ann", "192.0.2.99"), secs(300)).await;
    assert_eq!(world.passes(&call("bob", "192.0.2.50")).await, 200);
    assert_eq!(world.tells(&call("bob", "192.0.2.50")).await, "address");
    // Who is not signed in is counted by address alone.
    let nobody = saying(from(get("/client/v4/ips"), "10.1.2.3"), "x-forwarded-for", "192.0.2.60");
    assert_eq!(world.passes(&nobody).await, 200);
    world.frees_after(&nobody, Duration::from_millis(5)).await;
}

#[tokio::test]
async fn gitlab() {
    let mut world = world("gitlab");
    let sign_in = || request("POST", "/users/sign_in");
    assert_eq!(world.passing(&sign_in()).await, (30, 403));
    assert_eq!(world.status(&from(sign_in(), "192.0.2.8")).await, 200);
    // What comes back meanwhile does not help.
    world.frees_after(&sign_in(), secs(3_600)).await;
    assert_eq!(world.passing(&sign_in()).await, (29, 403));
    assert_eq!(world.status(&get("/users/sign_in")).await, 200);
    assert_eq!(world.passing(&from(sign_in(), "127.0.0.1")).await, (2_000, 200));
    // Neither is there a way around it when the store is away.
    world.fail(tollgate::StoreErrorKind::Timeout);
    assert_eq!(world.status(&from(sign_in(), "192.0.2.9")).await, 503);
}

#[tokio::test]
async fn mastodon() {
    let mut world = world("mastodon");
    let call = |user: &str, token: &str| {
        of_all(get("/api/v1/timelines/home"), &[("user", user), ("token", token)])
    };
    let mut passed = 0;
    for token in 0..6 {
        passed += world.passes(&call("ann", &token.to_string())).await;
    }
    assert_eq!(passed, 1_500);
    assert_eq!(world.passes(&call("bob", "b")).await, 300);
    assert_eq!(world.tells(&call("bob", "b")).await, "token");
    assert_eq!(world.passes(&get("/api/v1/timelines/public")).await, 300);
    assert_eq!(world.passes(&from(get("/api/v1/instance"), "192.0.2.8")).await, 300);
    // The window ends for all at once.
    world.frees_after(&call("bob", "b"), secs(300)).await;
    assert_eq!(world.passes(&call("ann", "0")).await, 300);

    let sign_in = |address: &str, email: &str| {
        saying(from(request("POST", "/auth/sign_in"), address), "email", email)
    };
    assert_eq!(world.passes(&sign_in("192.0.2.1", "a@example.org")).await, 25);
    assert_eq!(world.tells(&sign_in("192.0.2.1", "b@example.org")).await, "address");
    assert_eq!(world.tells(&sign_in("192.0.2.2", "a@example.org")).await, "email");
    assert_eq!(world.passes(&sign_in("192.0.2.2", "b@example.org")).await, 25);
    world.advance(300);
    assert_eq!(world.passes(&sign_in("192.0.2.1", "a@example.org")).await, 0);
    world.advance(3_600);
    assert_eq!(world.passes(&sign_in("192.0.2.1", "a@example.org")).await, 25);
}

#[tokio::test]
async fn qonto() {
    let mut world = world("qonto");
    for round in 0..10 {
        assert_eq!(world.passes(&get("/v2/transactions")).await, 1_000);
        let tells = if round < 9 { "short" } else { "long" };
        assert_eq!(world.tells(&get("/v2/transactions")).await, tells);
        world.advance(20);
    }
    assert_eq!(world.passes(&get("/v2/transactions")).await, 0);
    assert_eq!(world.status(&from(get("/v2/transactions"), "192.0.2.8")).await, 200);
    world.advance(1_200);
    assert_eq!(world.passes(&get("/v2/transactions")).await, 1_000);
}

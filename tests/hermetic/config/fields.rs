//! Each field has its effect.

use http::Request;
use tollgate::{Algorithm, Calendar, StoreErrorKind, Timestamp, config};

use super::{
    extractors,
    world::{World, from, get, of_tier, request, saying},
};
use crate::support::field;

const CLIENT: &str = "policy = [{ name = 'api', otherwise = true, limit = [\
                      { name = 'requests', key = 'ip', quota = '1/h' }] }]\n[client_ip]\n";

fn proxied(address: &str, client: &str) -> Request<()> {
    saying(from(get("/"), address), "x-forwarded-for", client)
}

#[tokio::test]
async fn the_client_is_the_peer_unless_a_header_is_believed() {
    let mut world = World::of_limit("key = 'ip', quota = '1/h'");
    assert_eq!(world.status(&proxied("10.0.0.1", "192.0.2.1")).await, 200);
    assert_eq!(world.status(&proxied("10.0.0.1", "192.0.2.2")).await, 429);

    let text = format!("{CLIENT}header = 'X-Forwarded-For'\ntrusted = ['10.0.0.1']");
    let mut world = World::of(&text);
    assert_eq!(world.status(&proxied("10.0.0.1", "192.0.2.1")).await, 200);
    assert_eq!(world.status(&proxied("10.0.0.1", "192.0.2.2")).await, 200);
    assert_eq!(world.status(&proxied("10.0.0.1", "192.0.2.2")).await, 429);
    assert_eq!(world.status(&proxied("10.0.0.2", "192.0.2.3")).await, 200);
    assert_eq!(world.status(&proxied("10.0.0.2", "192.0.2.4")).await, 429);
}

#[tokio::test]
async fn other_headers_and_numbers_of_proxies_are_believed() {
    for (said, header, value, status) in [
        ("header = 'forwarded'\ntrusted = ['10.0.0.1']", "forwarded", "for=192.0.2.9", 200),
        ("header = 'X-Real-IP'\ntrusted = ['10.0.0.1']", "x-real-ip", "192.0.2.9", 200),
        ("header = 'x-forwarded-for'\nhops = 1", "x-forwarded-for", "192.0.2.8, 192.0.2.9", 200),
        ("header = 'x-forwarded-for'\nhops = 2", "x-forwarded-for", "192.0.2.9, 192.0.2.8", 200),
        ("header = 'forwarded'\nhops = 1", "forwarded", "for=192.0.2.9", 200),
        ("header = 'forwarded'\nhops = 2", "forwarded", "for=192.0.2.9", 429),
        (
            "header = 'forwarded'\nhops = 2\nreject_unknown = true",
            "forwarded",
            "for=192.0.2.9",
            400,
        ),
    ] {
        let mut world = World::of(&format!("{CLIENT}{said}"));
        let request = saying(from(get("/"), "10.0.0.1"), header, value);
        // Somebody else behind that proxy.
        let other = request.clone();
        let other = saying(other, header, &value.replace("192.0.2.9", "192.0.2.10"));
        world.status(&other).await;
        assert_eq!(world.status(&request).await, status, "{said}");
        assert_ne!(world.status(&request).await, 200, "{said}");
    }
}

#[tokio::test]
async fn prefixes_say_who_is_counted_together() {
    let cases = [
        ("ipv4_prefix = 24", "192.0.2.1", "192.0.2.2", 429),
        ("ipv4_prefix = 31", "192.0.2.1", "192.0.2.2", 200),
        ("ipv6_prefix = 48", "2001:db8::1", "2001:db8:0:1::1", 429),
        ("ipv6_prefix = 64", "2001:db8::1", "2001:db8:0:1::1", 200),
    ];
    for (prefix, one, other, status) in cases {
        let mut world = World::of(&format!("{CLIENT}{prefix}"));
        assert_eq!(world.status(&from(get("/"), one)).await, 200);
        assert_eq!(world.status(&from(get("/"), other)).await, status, "{prefix}");
    }
}

#[tokio::test]
async fn routes_choose_the_policy() {
    let policy = |name: &str, which: &str, quota: &str| {
        format!(
            "[[policy]]\nname = '{name}'\n{which}\n[[policy.limit]]\nname = 'requests'\n\
             key = 'ip'\nquota = '{quota}'\n"
        )
    };
    let routed = policy("login", "routes = ['POST /login', '/in']", "1/h");
    let mut world = World::of(&routed);
    assert_eq!(world.passes(&request("POST", "/login")).await, 1);
    assert_eq!(world.passes(&get("/in")).await, 0);
    assert_eq!(world.passes(&get("/login")).await, 2_000);

    let mut world = World::of(&(routed + &policy("api", "otherwise = true", "3/h")));
    assert_eq!(world.passes(&request("POST", "/login")).await, 1);
    assert_eq!(world.passes(&get("/login")).await, 3);
}

#[tokio::test]
async fn on_failure_says_what_happens_without_the_store() {
    let cases = [
        ("", StoreErrorKind::Timeout, (2_000, 200)),
        ("on_failure = 'allow',", StoreErrorKind::Timeout, (2_000, 200)),
        ("on_failure = 'deny',", StoreErrorKind::Timeout, (0, 503)),
        ("on_failure = 'local',", StoreErrorKind::Timeout, (8, 429)),
        ("on_failure = 'local:0.25',", StoreErrorKind::Timeout, (2, 429)),
        ("on_failure = { misconfigured = 'deny' },", StoreErrorKind::Timeout, (2_000, 200)),
        ("on_failure = { misconfigured = 'deny' },", StoreErrorKind::Misconfigured, (0, 503)),
        ("on_failure = { busy = 'allow', otherwise = 'deny' },", StoreErrorKind::Timeout, (0, 503)),
    ];
    for (on_failure, kind, expected) in cases {
        let mut world = World::of_policy(on_failure, "key = 'ip', quota = '8/h'");
        world.fail(kind);
        assert_eq!(world.passing(&get("/")).await, expected, "{on_failure} {kind:?}");
    }
}

#[tokio::test]
async fn on_missing_key_says_what_happens_without_a_key() {
    let cases = [
        ("", (0, 401)),
        ("on_missing_key = 'reject',", (0, 401)),
        ("on_missing_key = 'reject:404',", (0, 404)),
        ("on_missing_key = 'skip',", (2_000, 200)),
        ("on_missing_key = 'anonymous',", (2, 429)),
    ];
    for (on_missing_key, expected) in cases {
        let mut world = World::of_policy(on_missing_key, "key = 'bearer', quota = '2/h'");
        assert_eq!(world.passing(&get("/")).await, expected, "{on_missing_key}");
    }
}

#[tokio::test]
async fn callers_may_be_allowed_or_denied() {
    let cases = [
        ("allow = { addresses = ['192.0.2.0/24'] },", (2_000, 200)),
        ("allow = { addresses = ['192.0.3.0/24', '192.0.2.8'] },", (1, 429)),
        ("deny = { addresses = ['192.0.2.7'] },", (0, 403)),
        ("allow = { keys = ['ip:192.0.2.7'] },", (2_000, 200)),
        ("allow = { keys = ['ip:192.0.2.8'] },", (1, 429)),
        ("deny = { keys = ['ip:192.0.2.7'] },", (0, 403)),
        ("deny = { key = 'header:x-tenant', keys = ['header.x-tenant:acme'] },", (0, 403)),
        ("deny = { key = 'header:x-tenant', keys = ['header.x-tenant:other'] },", (1, 429)),
        ("deny = { key = 'user or header:x-tenant', keys = ['user:42'] },", (0, 403)),
        ("allow = { addresses = ['::/0'], keys = ['ip:192.0.2.7'] },", (2_000, 200)),
    ];
    for (lists, expected) in cases {
        let mut world = World::of_policy(lists, "key = 'ip', quota = '1/h'");
        let request = saying(saying(get("/"), "x-tenant", "acme"), "user", "42");
        assert_eq!(world.passing(&request).await, expected, "{lists}");
    }
}

#[tokio::test]
async fn names_are_told() {
    let mut world = World::of_limit("key = 'ip', quota = '5/h'");
    let response = world.send(&get("/")).await;
    let policy = field(response.headers(), "ratelimit-policy").unwrap();
    assert_eq!(policy, "\"requests\";q=5;w=3600");
    assert_eq!(world.tells(&get("/")).await, "requests");
}

#[tokio::test]
async fn quota_burst_and_cost_say_how_many_pass() {
    for (limit, passing, micros) in [
        ("quota = '20/s'", 20, 50_000),
        ("quota = '5/10s'", 5, 2_000_000),
        ("quota = '60/m'", 60, 1_000_000),
        ("quota = '36/h'", 36, 100_000_000),
        ("quota = '864/d'", 864, 100_000_000),
        ("quota = '2/500ms'", 2, 250_000),
        ("quota = '20/s', burst = 40", 40, 50_000),
        ("quota = '20/s', burst = 4", 4, 50_000),
        ("quota = '20/s', cost = 5", 4, 250_000),
        ("quota = '20/s', burst = 40, cost = 15", 2, 250_000),
    ] {
        let mut world = World::of_limit(&format!("key = 'ip', {limit}"));
        assert_eq!(world.passes(&get("/")).await, passing, "{limit}");
        world.frees_after(&get("/"), std::time::Duration::from_micros(micros)).await;
    }
    let mut world = World::of_limit("key = 'ip', quota = '1/h', cost = 0");
    assert_eq!(world.passes(&get("/")).await, 2_000);
}

#[test]
fn algorithms_have_names() {
    for (limit, algorithm) in [
        ("quota = '5/m'", Algorithm::TokenBucket),
        ("quota = '5/m', algorithm = 'token_bucket'", Algorithm::TokenBucket),
        ("quota = '5/m', algorithm = 'sliding_log'", Algorithm::SlidingLog),
        ("quota = '5/m', algorithm = 'sliding_counter'", Algorithm::SlidingCounter),
        ("quota = '5/m', algorithm = 'fixed_window'", Algorithm::FixedWindow),
        ("quota = '5/day', algorithm = 'calendar'", Algorithm::Calendar(Calendar::Day)),
        ("quota = '5/week', algorithm = 'calendar'", Algorithm::Calendar(Calendar::Week)),
        ("quota = '5/month', algorithm = 'calendar'", Algorithm::Calendar(Calendar::Month)),
    ] {
        let text = format!(
            "policy = [{{ name = 'api', otherwise = true, limit = [{{ name = 'a', key = 'ip', {limit} }}] }}]"
        );
        let policies = config::from_toml(&text, &extractors()).unwrap();
        let limit = policies.policy("api").unwrap().limit("a").unwrap().clone();
        assert_eq!((limit.counts_by(), limit.quota().quantity()), (algorithm, 5));
    }
}

#[tokio::test]
async fn a_shadow_denies_nothing() {
    let mut world = World::of_limit("key = 'ip', quota = '1/h', shadow = true");
    assert_eq!(world.passes(&get("/")).await, 2_000);
}

#[tokio::test]
async fn a_scope_joins_buckets() {
    for (scope, passing) in [("", 2), ("scope = 'all'", 0)] {
        let policy = |name: &str, which: &str| {
            format!(
                "[[policy]]\nname = '{name}'\n{which}\n[[policy.limit]]\nname = 'requests'\n\
                 key = 'ip'\nquota = '2/h'\n{scope}\n"
            )
        };
        let text = policy("one", "routes = ['/one']") + &policy("other", "otherwise = true");
        let mut world = World::of(&text);
        assert_eq!(world.passes(&get("/one")).await, 2);
        assert_eq!(world.passes(&get("/other")).await, passing, "{scope}");
    }
}

#[test]
fn one_slot_is_set() {
    for (said, set) in [("", false), ("one_slot = false,", false), ("one_slot = true,", true)] {
        let text = format!(
            "policy = [{{ name = 'api', otherwise = true, {said} limit = [\
             {{ name = 'a', key = 'ip', quota = '20/s' }}] }}]"
        );
        let policies = config::from_toml(&text, &extractors()).unwrap();
        let limit = format!("{:?}", policies.policy("api").unwrap().limit("a"));
        assert!(limit.contains(&format!("one_slot: {set}")), "{said} {limit}");
    }
}

#[test]
fn a_lease_is_set() {
    let text = "policy = [{ name = 'api', otherwise = true, limit = [\
                { name = 'a', key = 'ip', quota = '20/s', lease = 5 }] }]";
    let policies = config::from_toml(text, &extractors()).unwrap();
    assert!(format!("{:?}", policies.policy("api").unwrap().limit("a")).contains("lease: 5"));
}

#[tokio::test]
async fn a_lockout_has_a_length_a_number_of_denials_and_a_status() {
    let mut world = World::of_limit("key = 'ip', quota = '1/m', lockout = { for = '1h' }");
    assert_eq!(world.passing(&get("/")).await, (1, 429));
    world.frees_after(&get("/"), crate::support::secs(3_600)).await;

    let lockout = "lockout = { for = '2d', after = 3, status = 404 }";
    let mut world = World::of_limit(&format!("key = 'ip', quota = '1/m', {lockout}"));
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(world.status(&get("/")).await);
    }
    assert_eq!(statuses, [200, 429, 429, 404, 404]);
    world.frees_after(&get("/"), crate::support::secs(2 * 86_400)).await;
}

#[tokio::test]
async fn tiers_have_quotas_of_their_own() {
    let tiers = "tiers = { pro = '5/h', big = { quota = '5/h', burst = 9 }, ours = 'unlimited' }";
    for (tier, passing) in [("free", 1), ("pro", 5), ("big", 9), ("ours", 2_000)] {
        let mut world = World::of_limit(&format!("key = 'ip', quota = '1/h', {tiers}"));
        assert_eq!(world.passes(&of_tier(get("/"), tier)).await, passing, "{tier}");
    }
}

#[tokio::test]
async fn an_override_may_end() {
    for (until, micros) in [
        ("2025-03-01T00:00:00Z", 1_740_787_200_000_000),
        ("'2025-03-01T00:00:00Z'", 1_740_787_200_000_000),
        ("'2025-03-01'", 1_740_787_200_000_000),
        ("2025-03-01", 1_740_787_200_000_000),
        ("2025-03-01T01:30:00+01:30", 1_740_787_200_000_000),
        ("2025-02-28T19:00:00-05:00", 1_740_787_200_000_000),
        ("2028-12-31T23:59:59Z", 1_861_919_999_000_000),
        ("2100-03-01T00:00:00Z", 4_107_542_400_000_000),
    ] {
        let one = format!("{{ key = 'ip:192.0.2.7', quota = '4/h', until = {until} }}");
        let limit = format!("key = 'ip', quota = '1/h', overrides = [{one}]");
        for (at, passing) in [(micros - 1, 4), (micros, 1)] {
            let mut world = World::of_limit(&limit);
            world.clock.set(Timestamp::from_micros(at));
            assert_eq!(world.passes(&get("/")).await, passing, "{until} at {at}");
        }
    }
}

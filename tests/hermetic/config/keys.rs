//! Whom limits count, and how their keys are named.

use std::collections::HashSet;

use tollgate::ApiKey;

use super::world::{World, from, get, saying};

/// What a limit counts by, what tells two callers apart, and the key of the first.
const KEYS: [(&str, &str, &str); 9] = [
    ("ip", "from", "ip:192.0.2.1"),
    ("peer", "from", "ip:192.0.2.1"),
    ("header:X-Tenant", "x-tenant", "header.x-tenant:one"),
    ("api_key:x-api-key", "x-api-key", "api_key:one"),
    ("bearer", "authorization", "bearer:one"),
    ("user", "user", "user:one"),
    ("claim:org", "org", "org:one"),
    ("bearer or user", "user", "user:one"),
    ("user or ip", "from", "ip:192.0.2.1"),
];

fn callers(how: &'static str) -> [http::Request<()>; 2] {
    if how == "from" {
        return ["192.0.2.1", "192.0.2.2"].map(|address| from(get("/"), address));
    }
    ["one", "two"].map(|name| {
        let value = if how == "authorization" { format!("Bearer {name}") } else { name.to_owned() };
        saying(get("/"), how, &value)
    })
}

#[tokio::test]
async fn each_key_tells_callers_apart() {
    for (key, how, _) in KEYS {
        let mut world = World::of_limit(&format!("key = '{key}', quota = '2/h'"));
        for caller in callers(how) {
            assert_eq!(world.passes(&caller).await, 2, "{key}");
        }
    }
    let mut world = World::of_limit("key = 'global', quota = '2/h'");
    let [one, two] = callers("from");
    assert_eq!((world.passes(&one).await, world.passes(&two).await), (2, 0));
}

#[tokio::test]
async fn a_key_that_is_named_is_that_of_a_caller() {
    for (key, how, name) in KEYS {
        let overrides = format!("overrides = [{{ key = '{name}', quota = '5/h', burst = 7 }}]");
        let mut world = World::of_limit(&format!("key = '{key}', quota = '2/h', {overrides}"));
        let deny = format!("deny = {{ keys = ['{name}'] }},");
        let mut denying = World::of_policy(&deny, &format!("key = '{key}', quota = '2/h'"));
        let [one, two] = callers(how);
        assert_eq!((world.passes(&one).await, world.passes(&two).await), (7, 2), "{key}");
        assert_eq!((denying.status(&one).await, denying.status(&two).await), (403, 200), "{key}");
    }
}

#[tokio::test]
async fn a_secret_may_be_named_by_its_hash() {
    let hash = ApiKey::bearer().key("one");
    let overrides = format!("overrides = [{{ key = '{}', quota = 'unlimited' }}]", hash.as_str());
    let mut world = World::of_limit(&format!("key = 'bearer', quota = '2/h', {overrides}"));
    let [one, two] = callers("authorization");
    assert_eq!((world.passes(&one).await, world.passes(&two).await), (2_000, 2));
}

#[tokio::test]
async fn an_address_stands_for_its_prefix() {
    let overrides = "overrides = [{ key = 'ip:2001:db8::1', quota = '5/h' }]";
    let limit = format!("key = 'ip', quota = '2/h', {overrides}");
    let mut world = World::of_limit(&limit);
    assert_eq!(world.passes(&from(get("/"), "2001:db8::2")).await, 5);
    let text = format!(
        "policy = [{{ name = 'api', otherwise = true, limit = [{{ name = 'a', {limit} }}] }}]\n\
         [client_ip]\nipv6_prefix = 48\n"
    );
    assert_eq!(World::of(&text).passes(&from(get("/"), "2001:db8:0:9::2")).await, 5);
}

#[tokio::test]
async fn routes_and_parts_of_paths_are_keys() {
    let text = "policy = [{ name = 'api', routes = ['/shops/{shop}', '/shops/{shop}/{*rest}'], \
                limit = [{ name = 'a', key = KEY, quota = '2/h', overrides = [OTHER] }] }]";
    let with =
        |key: &str, other: &str| World::of(&text.replace("KEY", key).replace("OTHER", other));
    let mut world = with("'param:shop'", "{ key = 'param.shop:b', quota = '3/h' }");
    let passing = [
        world.passes(&get("/shops/a")).await,
        world.passes(&get("/shops/a/x")).await,
        world.passes(&get("/shops/b/x")).await,
    ];
    assert_eq!(passing, [2, 0, 3]);

    let mut world = with("'route'", "{ key = 'route:/shops/{shop}', quota = '3/h' }");
    let passing = [
        world.passes(&get("/shops/a")).await,
        world.passes(&get("/shops/b")).await,
        world.passes(&get("/shops/a/x")).await,
    ];
    assert_eq!(passing, [3, 0, 2]);
}

#[tokio::test]
async fn several_keys_in_an_array_are_one() {
    let overrides = "overrides = [{ key = ['user:one', 'ip:192.0.2.1'], quota = '3/h' }]";
    let mut world =
        World::of_limit(&format!("key = ['user', 'bearer or ip'], quota = '2/h', {overrides}"));
    let mut passing = Vec::new();
    for user in ["one", "two"] {
        for address in ["192.0.2.1", "192.0.2.2"] {
            let request = saying(from(get("/"), address), "user", user);
            passing.push(world.passes(&request).await);
        }
    }
    assert_eq!(passing, [3, 2, 2, 2]);
}

#[tokio::test]
async fn what_a_program_registers_goes_first() {
    let seen: HashSet<&str> = ["ip", "peer", "global", "route", "bearer"].into();
    for name in seen {
        let extractors = super::extractors().with(name, super::by("user"));
        let text = format!(
            "policy = [{{ name = 'api', otherwise = true, limit = [\
             {{ name = 'a', key = '{name}', quota = '1/h' }}] }}]"
        );
        let mut world = World::of_with(&text, &extractors);
        let [one, two] = callers("user");
        assert_eq!((world.passes(&one).await, world.passes(&two).await), (1, 1), "{name}");
    }
}

#[tokio::test]
async fn an_owner_of_a_known_key_is_a_key() {
    let overrides = "overrides = [{ key = 'owner:acme', quota = '5/h' }]";
    let mut world = World::of_limit(&format!("key = 'known_key', quota = '2/h', {overrides}"));
    let of = |owner: &str| {
        let mut request = get("/");
        request.extensions_mut().insert(tollgate::key::KnownKey::new(owner));
        request
    };
    assert_eq!((world.passes(&of("acme")).await, world.passes(&of("other")).await), (5, 2));
    assert_eq!(world.status(&get("/")).await, 401);
}

#[cfg(feature = "jwt")]
#[tokio::test]
async fn verified_claims_are_keys() {
    let overrides = "overrides = [{ key = ['claim.iss:id', 'claim.sub:alice'], quota = '5/h' }]";
    let limit = format!("key = ['claim:iss', 'claim:sub'], quota = '2/h', {overrides}");
    let mut world = World::of_limit(&limit);
    let of = |issuer: &str, subject: &str| {
        let mut claims = tollgate::auth::Claims::default();
        (claims.iss, claims.sub) = (issuer.into(), subject.into());
        let mut request = get("/");
        request.extensions_mut().insert(claims);
        request
    };
    let passing = [
        world.passes(&of("id", "alice")).await,
        world.passes(&of("id", "bob")).await,
        world.passes(&of("other", "alice")).await,
    ];
    assert_eq!(passing, [5, 2, 2]);
    assert_eq!(world.status(&of("", "alice")).await, 401);
    assert_eq!(world.status(&get("/")).await, 401);
}

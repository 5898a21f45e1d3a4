//! Several layers that grant tiers, and what stood in a request before.

use http::{HeaderName, Request};
use tollgate::{ApiKeyLayer, ApiKeys, Tier};
use tower::layer::util::Stack;

use super::{Inner, Lines, request, send};

fn layer(
    header: &'static str,
    secret: &str,
    owner: &'static str,
    tier: Option<&str>,
) -> ApiKeyLayer {
    let keys = ApiKeys::builder().key(ApiKeys::digest(secret), owner, tier.map(Tier::new));
    let layer = ApiKeyLayer::new(keys.build().unwrap()).header(HeaderName::from_static(header));
    layer.optional()
}

/// The first is the outer one.
fn both(outer: ApiKeyLayer, inner: ApiKeyLayer) -> Stack<ApiKeyLayer, ApiKeyLayer> {
    Stack::new(inner, outer)
}

fn with_tier(mut request: Request<()>, tier: &str) -> Request<()> {
    request.extensions_mut().insert(Tier::new(tier));
    request
}

#[tokio::test]
async fn a_tier_that_nobody_has_granted_is_removed() {
    let layer = layer("x-a", "a", "ann", None);
    let inner = Inner::default();
    assert_eq!(send(&layer, &inner, with_tier(request(&[]), "forged")).await.body, "");
    // Nor is it that of an owner who has none.
    let known = with_tier(request(&[("x-a", "a")]), "forged");
    assert_eq!(send(&layer, &inner, known).await.body, "owner ann");
}

#[tokio::test]
async fn the_innermost_layer_that_knows_the_caller_says_the_tier() {
    let stack =
        both(layer("x-a", "a", "ann", Some("gold")), layer("x-b", "b", "bob", Some("lead")));
    let inner = Inner::default();
    let cases: [(Lines<'_>, &str); 4] = [
        (&[], ""),
        (&[("x-b", "b")], "owner bob, tier lead"),
        (&[("x-a", "a"), ("x-b", "b")], "owner bob, tier lead"),
        // The inner one has verified no key, so there is no owner, but leaves what was granted.
        (&[("x-a", "a")], "tier gold"),
    ];
    for (lines, caller) in cases {
        let answer = send(&stack, &inner, with_tier(request(lines), "forged")).await;
        assert_eq!(answer.body, caller, "{lines:?}");
    }
    // A caller without a tier has not that of another caller.
    let stack = both(layer("x-a", "a", "ann", Some("gold")), layer("x-b", "b", "bob", None));
    let answer = send(&stack, &inner, request(&[("x-a", "a"), ("x-b", "b")])).await;
    assert_eq!(answer.body, "owner bob");
}

#[cfg(feature = "jwt")]
#[tokio::test]
async fn keys_and_tokens_stand_side_by_side() {
    use serde_json::json;
    use tollgate::{Claims, JwtKeys, JwtLayer, ManualClock};
    use tower::ServiceBuilder;

    use super::jwt::{SECRET, but, signed};

    let tokens = || {
        let builder = JwtLayer::<Claims>::new(JwtKeys::hs256(SECRET)).audience("api").optional();
        builder.clock(ManualClock::new())
    };
    let plan = |claims: &Claims| claims.text("plan").map(Tier::new);
    let keys = || layer("x-a", "a", "ann", Some("gold"));
    let token = format!("Bearer {}", signed(&but("plan", json!("pro"))));
    let inner = Inner::default();
    let cases: [(Lines<'_>, [&str; 2]); 4] = [
        (&[], ["", ""]),
        (&[("x-a", "a")], ["owner ann, tier gold", "owner ann, tier gold"]),
        (&[("authorization", &token)], ["subject alice, tier pro", "subject alice, tier pro"]),
        (
            &[("x-a", "a"), ("authorization", &token)],
            ["owner ann, subject alice, tier pro", "owner ann, subject alice, tier gold"],
        ),
    ];
    for (lines, [token_inside, key_inside]) in cases {
        let tiered = tokens().tier(plan).build().unwrap();
        let outer_keys = ServiceBuilder::new().layer(keys()).layer(tiered.clone());
        let outer_token = ServiceBuilder::new().layer(tiered).layer(keys());
        let forged = || with_tier(request(lines), "forged");
        assert_eq!(send(&outer_keys, &inner, forged()).await.body, token_inside, "{lines:?}");
        assert_eq!(send(&outer_token, &inner, forged()).await.body, key_inside, "{lines:?}");
    }
    // A layer that grants nothing to anybody does not touch tiers.
    let untiered = tokens().build().unwrap();
    let answer = send(&untiered, &inner, with_tier(request(&[]), "own")).await;
    assert_eq!(answer.body, "tier own");
}

#[tokio::test]
async fn a_tier_that_the_program_puts_between_them_does_not_stand_for_one_that_was_granted() {
    use tower::util::MapRequestLayer;

    let between = MapRequestLayer::new(|request: Request<()>| with_tier(request, "internal"));
    let stack = Stack::new(
        Stack::new(layer("x-b", "b", "bob", Some("lead")), between),
        layer("x-a", "a", "ann", Some("gold")),
    );
    let inner = Inner::default();
    assert_eq!(send(&stack, &inner, request(&[("x-a", "a")])).await.body, "tier gold");
    assert_eq!(send(&stack, &inner, request(&[])).await.body, "");
}

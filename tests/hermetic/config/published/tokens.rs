//! Limits of which a request takes an estimate, which the handler settles.

use tollgate::Decision;

use super::{of_all, world};
use crate::{
    config::world::{of_tier, request},
    support::secs,
};

#[tokio::test]
async fn openai() {
    let mut world = world("openai");
    let chat = |organisation: &str, model: &str| {
        let request = request("POST", "/v1/chat/completions");
        of_all(request, &[("organisation", organisation), ("model", model)])
    };
    assert_eq!(world.passes(&chat("acme", "small")).await, 3);
    assert_eq!(world.tells(&chat("acme", "small")).await, "requests");
    world.frees_after(&chat("acme", "small"), secs(20)).await;
    // Each model, and each organisation, for itself.
    assert_eq!(world.passes(&chat("acme", "large")).await, 3);
    assert_eq!(world.passes(&chat("other", "small")).await, 3);
    // The tier has more: 200,000 tokens a minute are 400 estimates.
    let paying = of_tier(chat("paying", "small"), "tier-1");
    assert_eq!(world.passes(&paying).await, 400);
    assert_eq!(world.tells(&paying).await, "tokens");
    world.frees_after(&paying, secs(60) / 400).await;
    // What was not used is given back.
    world.advance(1);
    let response = world.send(&paying).await;
    let decision = response.extensions().get::<Decision>().unwrap();
    decision.settle("tokens", 20).await.unwrap();
    let left = decision.look().await.unwrap();
    let tokens = left.verdicts().iter().find(|verdict| verdict.name() == "tokens").unwrap();
    assert_eq!(tokens.standing().remaining(), 200_000 / 60 - 20);
    // A day has 200 requests of the lowest tier.
    let mut passed = 0;
    for _ in 0..200 {
        world.advance(60);
        passed += world.passes(&chat("daily", "small")).await;
    }
    assert_eq!(passed, 200 + 200 * 200 * 60 / 86_400);
    assert_eq!(world.tells(&chat("daily", "small")).await, "requests-daily");
}

#[tokio::test]
async fn anthropic() {
    let mut world = world("anthropic");
    let ask = |organisation: &str, class: &str| {
        let request = request("POST", "/v1/messages");
        of_all(request, &[("organisation", organisation), ("class", class)])
    };
    assert_eq!(world.passes(&ask("acme", "a")).await, 30);
    assert_eq!(world.tells(&ask("acme", "a")).await, "input-tokens");
    assert_eq!(world.passes(&ask("acme", "b")).await, 30);
    world.frees_after(&ask("acme", "a"), secs(2)).await;
    // What streams out is charged while it does.
    world.advance(60);
    let response = world.send(&ask("acme", "a")).await;
    let decision = response.extensions().get::<Decision>().unwrap();
    assert!(decision.charge("output-tokens", 7_900).await.unwrap().is_allowed());
    assert!(!decision.charge("output-tokens", 1).await.unwrap().is_allowed());
    assert_eq!(world.tells(&ask("acme", "a")).await, "output-tokens");
    world.frees_after(&ask("acme", "a"), secs(60) / 80).await;
}

#[tokio::test]
async fn shopify() {
    let mut world = world("shopify");
    let query = |app: &str, shop: &str| {
        of_all(request("POST", &format!("/shops/{shop}/graphql.json")), &[("app", app)])
    };
    assert_eq!(world.passes(&query("one", "hats")).await, 10);
    assert_eq!(world.passes(&query("two", "hats")).await, 10);
    assert_eq!(world.passes(&query("one", "shoes")).await, 10);
    world.frees_after(&query("one", "hats"), secs(2)).await;
    world.advance(20);
    // The difference is given back: 10 of 100 points used each time.
    for _ in 0..50 {
        let response = world.send(&query("one", "hats")).await;
        assert_eq!(response.status(), 200);
        response.extensions().get::<Decision>().unwrap().settle("points", 10).await.unwrap();
    }
}

use http::Request;
use tollgate::{
    Decision, Key, KeyExtractor, Limit, Limiter, Policy, Rejection, RequestHead, Ruling, key,
};

/// What a request is about.
#[derive(Clone)]
struct About(Vec<String>);

/// Counts all that a request is about.
pub(crate) fn about() -> impl KeyExtractor {
    key::from_fn(|head| Some(head.extension::<About>()?.0.clone()))
}

/// A request that is about these.
pub(crate) fn asking(about: &[&str]) -> Request<()> {
    let mut request = Request::new(());
    let about = about.iter().copied().map(String::from).collect();
    request.extensions_mut().insert(About(about));
    request
}

/// How a request that is about these is decided, by a store that answers.
pub(crate) async fn decide(limiter: &Limiter, policy: &Policy, about: &[&str]) -> Decision {
    let request = asking(about);
    match limiter.decide(policy, RequestHead::new(&request)).await {
        Ruling::Admit(decision) | Ruling::Reject(Rejection::Limited(decision)) => decision,
        Ruling::Reject(rejection) => panic!("not decided: {rejection:?}"),
    }
}

/// What a key has left of a limit.
pub(crate) async fn left(limiter: &Limiter, limit: &Limit, key: impl Into<Key>) -> u64 {
    let look = limiter.look(limit, key).await.unwrap();
    look.verdicts()[0].standing().remaining()
}

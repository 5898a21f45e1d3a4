//! Answers that are whole, but of any form.

use std::time::Duration;

use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tollgate::{Algorithm, Limit, Quota, StoreErrorKind};

use super::{
    Liar, check,
    reply::{Reply, reply},
};
use crate::support::fake::Act;

const NOW: std::ops::RangeInclusive<i64> = 0..=10_000_000_000_000_000;
const BURST: i64 = 100;
const UNIT: i64 = 36_000_000;

/// What a request is to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meets {
    Admission,
    Denial,
    /// The kind of failure, or any where the answer names one.
    Failure(Option<StoreErrorKind>),
}

const WRONG: Meets = Meets::Failure(Some(StoreErrorKind::Unexpected));

/// By what the scripts document: an answer that they cannot give is an error.
fn expected(reply: &Reply, limits: &[Algorithm]) -> Meets {
    let values = match reply {
        Reply::Array(values) => values,
        Reply::Error(_) | Reply::Other("!9\r\nERR wrong\r\n") => return Meets::Failure(None),
        _ => return WRONG,
    };
    let [Reply::Int(now), hits @ ..] = values.as_slice() else { return WRONG };
    if !NOW.contains(now) || hits.len() != limits.len() {
        return WRONG;
    }
    let mut all = Vec::new();
    for (hit, algorithm) in hits.iter().zip(limits) {
        match (hit, found(hit, *algorithm)) {
            // A key that holds something else.
            (Reply::Bulk(_), _) => return Meets::Failure(None),
            (_, None) => return WRONG,
            (_, Some(found)) => all.push(found),
        }
    }
    let fits = all.iter().all(|(_, fits)| *fits);
    if all.iter().any(|(charged, _)| *charged != fits) {
        WRONG
    } else if fits {
        Meets::Admission
    } else {
        Meets::Denial
    }
}

/// Whether a hit was charged, and whether it fits; nothing, if the answer is none.
fn found(hit: &Reply, algorithm: Algorithm) -> Option<(bool, bool)> {
    let single = [hit.clone()];
    let numbers = if let Reply::Array(numbers) = hit { numbers } else { single.as_slice() };
    let number = |reply: &Reply| if let Reply::Int(number) = reply { Some(*number) } else { None };
    let numbers: Vec<i64> = numbers.iter().map(number).collect::<Option<_>>()?;
    let (x, rest) = numbers.split_first()?;
    let charged = *x >= 0;
    let x = if charged { *x } else { -1 - x };
    if !NOW.contains(&x) || rest.iter().any(|number| !NOW.contains(number)) {
        return None;
    }
    if matches!(hit, Reply::Array(_)) && rest.is_empty() {
        return None;
    }
    let fits = match (algorithm, rest) {
        (Algorithm::TokenBucket, []) => x + UNIT <= BURST * UNIT,
        (Algorithm::TokenBucket, [picos @ 0..=999_999]) => {
            x + UNIT + i64::from(*picos > 0) <= BURST * UNIT
        }
        (Algorithm::SlidingLog, [_, _]) | (Algorithm::FixedWindow, [] | [0]) => x < BURST,
        _ => return None,
    };
    Some((charged, fits))
}

fn answers_of_any_form(limits: &[Algorithm], cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let liar = runtime.block_on(Liar::new());
    let limiter = runtime.block_on(liar.limiter(Duration::from_secs(5)));
    let all = limits.iter().zip(["one", "two", "three"]);
    let all = all.map(|(by, name)| Limit::new(name, Quota::per_hour(100)).algorithm(*by));
    let all: Vec<_> = all.collect();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&reply(limits.len()), |reply| {
        liar.tell(Act::Reply(reply.bytes()));
        let found = match runtime.block_on(check(&limiter, &all)) {
            Ok(decision) if decision.is_allowed() => Meets::Admission,
            Ok(_) => Meets::Denial,
            Err(error) => Meets::Failure(Some(error.kind())),
        };
        let expected = expected(&reply, limits);
        let same = found == expected
            || matches!((found, expected), (Meets::Failure(_), Meets::Failure(None)));
        let fail = || TestCaseError::fail(format!("{found:?}, not {expected:?}: {reply:?}"));
        if same { Ok(()) } else { Err(fail()) }
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn answers_of_any_form_about_a_bucket_admit_nothing_by_accident() {
    answers_of_any_form(&[Algorithm::TokenBucket], 4_000);
}

#[test]
fn answers_of_any_form_about_a_log_admit_nothing_by_accident() {
    answers_of_any_form(&[Algorithm::SlidingLog], 2_000);
}

#[test]
fn answers_of_any_form_about_a_window_admit_nothing_by_accident() {
    answers_of_any_form(&[Algorithm::FixedWindow], 2_000);
}

#[test]
fn answers_of_any_form_about_several_limits_admit_nothing_by_accident() {
    answers_of_any_form(&[Algorithm::TokenBucket, Algorithm::FixedWindow], 4_000);
}

#[tokio::test]
async fn answers_of_any_form_to_refunds_and_resets_are_errors() {
    let liar = Liar::new().await;
    let limiter = liar.limiter(Duration::from_secs(5)).await;
    let limit = Limit::new("all", Quota::per_hour(100));
    for (answer, refunded, reset) in [
        ("*2\r\n:1700000000000000\r\n:1\r\n", true, false),
        (":1\r\n", false, true),
        (":0\r\n", false, true),
        (":-1\r\n", false, false),
        ("*0\r\n", false, false),
        ("*1\r\n:1700000000000000\r\n", false, false),
        ("*2\r\n:-1\r\n:1\r\n", false, false),
        ("*2\r\n:1700000000000000\r\n:2\r\n", false, false),
        ("*2\r\n:1700000000000000\r\n$-1\r\n", false, false),
        ("*3\r\n:1700000000000000\r\n:1\r\n:1\r\n", false, false),
        ("+OK\r\n", false, false),
        ("$-1\r\n", false, false),
    ] {
        liar.tell(Act::Reply(b"*2\r\n:1700000000000000\r\n:0\r\n".to_vec()));
        let decision = limiter.check(&limit, "somebody").await.expect("an answer");
        liar.tell(Act::Reply(answer.into()));
        let outcomes = [decision.refund().await, limiter.reset(&limit, "somebody").await];
        for (outcome, expected) in outcomes.into_iter().zip([refunded, reset]) {
            let kind = outcome.err().map(|error| error.kind());
            let expected = (!expected).then_some(StoreErrorKind::Unexpected);
            assert_eq!(kind, expected, "{answer:?}");
        }
    }
}

//! Callers that go away, and callers that are not heard of any more.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use tokio::{task::JoinSet, time::timeout};
use tollgate::{RedisStore, Store as _, store::Reply};

use super::{PLENTY, hit, hold, look, moment, redis, take, taken};

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn callers_on_one_thread_that_go_away_at_any_moment_harm_nobody() {
    go_away().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_on_many_threads_that_go_away_at_any_moment_harm_nobody() {
    go_away().await;
}

/// Half of many callers give up at random moments.
async fn go_away() {
    let (_server, store) = redis().await;
    let mut callers = JoinSet::new();
    for caller in 0..256 {
        let store = store.clone();
        callers.spawn(async move {
            let key = format!("caller{caller}");
            match caller % 2 {
                0 => patient(&store, &key).await,
                _ => hasty(&store, &key).await,
            }
        });
    }
    timeout(PATIENCE, callers.join_all()).await.expect("nobody starves");
}

async fn patient(store: &RedisStore, key: &str) {
    for round in 1..=30 {
        assert_eq!(taken(&take(store, key).await.unwrap()), round, "{key}");
    }
}

async fn hasty(store: &RedisStore, key: &str) {
    let (mut sent, mut seen) = (0, 0);
    for _ in 0..60 {
        sent += 1;
        let asking = store.acquire(&[hit(key, PLENTY)]);
        if fastrand::u8(..8) == 0 {
            // Before anybody looked at it.
            drop(asking);
            continue;
        }
        if let Ok(answer) = timeout(Duration::from_micros(fastrand::u64(..3_000)), asking).await {
            let now = taken(&answer.unwrap());
            // Its own key, and each call charged once at most.
            assert!(now > seen && now <= sent, "{now} of {key}, after {seen}, {sent} sent");
            seen = now;
        }
    }
    let now = look(store, key).await;
    assert!((seen..=sent).contains(&now), "{now} of {key}, after {seen}, {sent} sent");
}

/// Polls once. Whether the answer is not there yet.
async fn poll_once(mut reply: Pin<&mut Reply>) -> bool {
    poll_fn(|cx| Poll::Ready(reply.as_mut().poll(cx).is_pending())).await
}

#[tokio::test]
async fn a_request_that_went_out_alone_and_is_not_polled_again_holds_nobody_up() {
    for polls in [0, 1] {
        let (_server, store) = redis().await;
        let mut held = pin!(hold(&store));
        for _ in 0..polls {
            assert!(poll_once(held.as_mut()).await);
        }
        for _ in 0..5 {
            timeout(PATIENCE, take(&store, "one")).await.expect("no hang").unwrap();
        }
        let mut callers = JoinSet::new();
        for caller in 0..64 {
            let store = store.clone();
            callers.spawn(async move { patient(&store, &format!("caller{caller}")).await });
        }
        timeout(PATIENCE, callers.join_all()).await.expect("no hang");
        assert_eq!(taken(&held.await.unwrap()), 1, "it is answered when it wants to be");
    }
}

#[tokio::test]
async fn requests_that_wait_and_are_not_polled_again_hold_nobody_up() {
    let (_server, store) = redis().await;
    let held = hold(&store);
    let mut left = Vec::new();
    for round in 0..20 {
        for at in 0..10 {
            let mut reply = Box::pin(store.acquire(&[hit(&format!("left{at}"), PLENTY)]));
            if fastrand::bool() {
                poll_once(reply.as_mut()).await;
            }
            left.push(reply);
        }
        let answer = timeout(PATIENCE, take(&store, "k")).await.expect("no hang").unwrap();
        assert_eq!(taken(&answer), round + 1);
    }
    // They are there, whether somebody waits for their answers or not.
    for at in 0..10 {
        assert_eq!(look(&store, &format!("left{at}")).await, 20);
    }
    drop((left, held));
}

#[tokio::test]
async fn requests_that_are_given_up_before_they_are_sent_charge_nothing_and_take_no_place() {
    let (_server, store) = redis().await;
    let held = hold(&store);
    let (mut gone, mut stay) = (Vec::new(), Vec::new());
    for _ in 0..64 {
        for _ in 0..3 {
            gone.push(store.acquire(&[hit("gone", PLENTY)]));
        }
        stay.push(store.acquire(&[hit("stays", PLENTY)]));
    }
    drop(gone);
    let mut answers = Vec::new();
    for reply in stay {
        answers.push(reply.await.unwrap());
    }
    // All of them in one batch.
    moment(&answers);
    assert!(answers.iter().map(taken).eq(1..=64));
    drop(held);
    assert_eq!(look(&store, "gone").await, 0);
    assert_eq!(look(&store, "held").await, 0);
}

//! What is not given back is counted.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tollgate::{RedisStore, Store as _, StoreErrorKind};

use super::{PLENTY, hit};
use crate::support::fake::{Act, FakeServer, ready};

/// A cluster of one node, which answers requests in turn as it is told, and counts refunds.
struct Fake {
    _server: FakeServer,
    store: RedisStore,
    refunds: Arc<AtomicUsize>,
    refuses: Arc<AtomicBool>,
    hangs: Arc<AtomicBool>,
}

async fn fake(answers: &'static [&'static str]) -> Fake {
    let port = Arc::new(Mutex::new(String::new()));
    let (refunds, refuses) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (own, calls) = (Arc::clone(&port), AtomicUsize::new(0));
    let (gives, no) = (Arc::clone(&refunds), Arc::clone(&refuses));
    let hangs = Arc::new(AtomicBool::new(false));
    let never = Arc::clone(&hangs);
    let server = FakeServer::start(move |command| match command[0].as_str() {
        "CLUSTER" => {
            let port = own.lock().unwrap();
            let node = format!("*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$2\r\nid\r\n");
            Act::Reply(format!("*1\r\n*3\r\n:0\r\n:16383\r\n{node}").into_bytes())
        }
        // A refund has two parameters for each key, and the second is a stamp.
        "EVALSHA" if command[2] == "1" && command[4].contains(' ') => {
            gives.fetch_add(1, Ordering::SeqCst);
            let answer = match (no.load(Ordering::SeqCst), never.load(Ordering::SeqCst)) {
                (true, _) => FAILS,
                (_, true) => "",
                _ => "*2\r\n:1700000000000000\r\n:1\r\n",
            };
            Act::Reply(answer.as_bytes().to_vec())
        }
        "EVALSHA" if command[2] != "0" => {
            let at = calls.fetch_add(1, Ordering::SeqCst);
            Act::Reply(answers[at % answers.len()].as_bytes().to_vec())
        }
        _ => ready(command),
    })
    .await;
    let url = server.url();
    url.rsplit(':').next().unwrap().clone_into(&mut port.lock().unwrap());
    let store = RedisStore::builder(url.replace("redis://", "redis+cluster://"))
        .deadline(Duration::from_secs(4));
    let store = store.connect().await.expect("a fake");
    Fake { _server: server, store, refunds, refuses, hangs }
}

const CHARGED: &str = "*2\r\n:1700000000000000\r\n:0\r\n";
const DENIED: &str = "*2\r\n:1700000000000000\r\n:-86400000001\r\n";
const FAILS: &str = "-OOM command not allowed\r\n";

/// Counts what is recorded while `run` runs.
#[cfg(feature = "metrics")]
fn withheld(run: impl AsyncFnOnce()) -> u64 {
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(run()));
    let metrics = snapshotter.snapshot().into_vec().into_iter();
    let mut ours =
        metrics.filter(|(key, ..)| key.key().name() == "tollgate_refunds_withheld_total");
    ours.next().map_or(0, |(.., value)| match value {
        DebugValue::Counter(count) => count,
        _ => panic!("no counter"),
    })
}

#[cfg(feature = "metrics")]
#[test]
fn refunds_that_fail_are_counted_and_the_denial_stands() {
    for refuses in [false, true] {
        let count = withheld(async || {
            let fake = fake(&[CHARGED, CHARGED, DENIED]).await;
            fake.refuses.store(refuses, Ordering::SeqCst);
            let hits = ["{a}", "{b}", "{c}"].map(|key| hit(key, PLENTY));
            let answer = fake.store.acquire(&hits).await.expect("a denial");
            let fits: Vec<bool> = answer.standings.iter().map(|it| it.fits()).collect();
            assert_eq!(fits, [true, true, false]);
            // As before the charge.
            let left: Vec<u64> = answer.standings.iter().map(|it| it.remaining()).collect();
            assert_eq!(left, [1_000, 1_000, 0]);
            assert_eq!(fake.refunds.load(Ordering::SeqCst), 2);
        });
        assert_eq!(count, if refuses { 2 } else { 0 });
    }
}

#[tokio::test]
async fn a_denial_does_not_wait_for_a_refund_that_hangs() {
    let fake = fake(&[CHARGED, DENIED]).await;
    fake.hangs.store(true, Ordering::SeqCst);
    let answer = fake.store.acquire(&["{a}", "{b}"].map(|key| hit(key, PLENTY))).await;
    let answer = answer.expect("a denial");
    assert_eq!([0, 1].map(|at| answer.standings[at].fits()), [true, false]);
    assert_eq!([0, 1].map(|at| answer.standings[at].remaining()), [1_000, 0]);
}

#[tokio::test]
async fn a_group_that_fails_fails_the_request_and_gives_back_those_before_it() {
    let fake = fake(&[CHARGED, CHARGED, FAILS]).await;
    let hits = ["{a}", "{b}", "{c}", "{d}"].map(|key| hit(key, PLENTY));
    let error = fake.store.acquire(&hits).await.expect_err("the third fails");
    assert_eq!(error.kind(), StoreErrorKind::OutOfMemory, "{error}");
    // In the background: the caller does not wait for it.
    let given = async {
        while fake.refunds.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), given).await.expect("they are given back");
}

//! Many threads at one store.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

use tollgate::{ManualClock, MemoryStore, Quota, Store, algorithm::Algorithm, store::Hit};

use super::take;
use crate::support::{memory, secs};

const THREADS: usize = 8;

fn hit(key: &[u8], quota: Quota) -> Hit<'_> {
    Hit { key, meter: Algorithm::TokenBucket.meter(quota), cost: 1, shadow: false, lease: 0 }
}

fn admits(store: &MemoryStore, hits: &[Hit<'_>]) -> bool {
    store.acquire(hits).try_now().unwrap().unwrap().standings.iter().all(|s| s.fits())
}

/// Runs `work` on several threads at once, and fails where they do not come to an end.
fn together(work: impl Fn(usize) + Sync + Send + 'static) {
    let (done, finished) = mpsc::channel();
    thread::spawn(move || {
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for at in 0..THREADS {
                let (start, work) = (&start, &work);
                scope.spawn(move || {
                    start.wait();
                    work(at);
                });
            }
        });
        done.send(()).unwrap();
    });
    finished.recv_timeout(secs(60)).expect("the threads wait for each other, or one panicked");
}

#[test]
fn exactly_what_the_tightest_limit_holds_is_admitted_and_the_others_pay_for_no_more() {
    let (store, _) = memory();
    let quotas = [Quota::per_day(5_000), Quota::per_day(3_001), Quota::per_day(9_999)];
    let admitted = Arc::new(AtomicU64::new(0));
    let (shared, count) = (store.clone(), Arc::clone(&admitted));
    together(move |_| {
        for _ in 0..2_000 {
            let hits = [hit(b"a", quotas[0]), hit(b"b", quotas[1]), hit(b"c", quotas[2])];
            count.fetch_add(u64::from(admits(&shared, &hits)), Ordering::SeqCst);
        }
    });
    assert_eq!(admitted.load(Ordering::SeqCst), 3_001);
    for (key, quota) in [b"a", b"b", b"c"].into_iter().zip(quotas) {
        let left = take(&store, key, quota, 0).standings[0].remaining();
        assert_eq!(left, quota.capacity() - 3_001);
    }
}

#[test]
fn each_of_many_keys_admits_exactly_its_limit() {
    let admitted: Arc<[AtomicU64]> = (0..500).map(|_| AtomicU64::new(0)).collect();
    let (store, counts) = (memory().0, Arc::clone(&admitted));
    together(move |thread| {
        for round in 0..10 * counts.len() {
            let at = (round * 7 + thread) % counts.len();
            let key = format!("key:{at}");
            let admits = admits(&store, &[hit(key.as_bytes(), Quota::per_day(11))]);
            counts[at].fetch_add(u64::from(admits), Ordering::SeqCst);
        }
    });
    for count in admitted.iter() {
        assert_eq!(count.load(Ordering::SeqCst), 11);
    }
}

#[test]
fn requests_that_name_the_same_limits_in_opposite_order_do_not_wait_for_each_other() {
    let store = MemoryStore::builder().clock(ManualClock::new()).build();
    together(move |at| {
        for round in 0..20_000 {
            let keys: [String; 4] =
                std::array::from_fn(|n| format!("key:{}", (round * 3 + n * 5) % 64));
            let mut hits: Vec<_> =
                keys.iter().map(|key| hit(key.as_bytes(), Quota::per_second(1_000))).collect();
            if at % 2 == 0 {
                hits.reverse();
            }
            admits(&store, &hits);
        }
    });
}

#[test]
fn a_flood_on_many_threads_stays_under_the_cap() {
    let store = MemoryStore::builder().capacity(10_000).clock(ManualClock::new()).build();
    let shared = store.clone();
    together(move |at| {
        for number in 0..20_000 {
            let key = format!("{at}:{number}");
            admits(&shared, &[hit(key.as_bytes(), Quota::per_minute(9))]);
            if number % 100 == 0 {
                assert!(shared.len() <= 10_000);
            }
        }
    });
    assert!(store.len() <= 10_000);
}

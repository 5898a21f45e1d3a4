//! What a decision costs without HTTP and without a network.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tollgate::{
    MemoryStore, Quota, Store, Timestamp,
    algorithm::{Algorithm, FullAt, TokenBucket},
    store::Hit,
};

const NOW: Timestamp = Timestamp::from_micros(1_735_689_600_000_000);
/// Never exhausted by a benchmark.
const WIDE: Quota = Quota::per_day(86_400).burst(300_000_000);
const KEYS: usize = 10_000;

fn bucket(c: &mut Criterion) {
    let bucket = TokenBucket::new(Quota::per_minute(70));
    let fresh = bucket.backlog(None, NOW).0;
    let half = bucket.state(fresh, 35, NOW);
    let empty = bucket.state(fresh, 70, NOW);
    let mut group = c.benchmark_group("bucket");
    for (name, state) in [("allowed", half), ("denied", empty)] {
        group.bench_function(name, |b| b.iter(|| decide(&bucket, black_box(Some(state)))));
    }
    group.finish();
}

/// All that a store asks of the arithmetic.
fn decide(bucket: &TokenBucket, state: Option<FullAt>) -> (tollgate::Standing, Option<FullAt>) {
    let now = black_box(NOW);
    let (backlog, _) = bucket.backlog(state, now);
    let admitted = bucket.fits(backlog, 1);
    let next = admitted.then(|| bucket.state(backlog, 1, now));
    (bucket.standing(backlog, 1, admitted, now), next)
}

fn memory(c: &mut Criterion) {
    let names: Vec<String> =
        (0..KEYS).map(|n| format!("{{ip:10.0.0.{n}}}:api/burst:tb1s")).collect();
    let mut group = c.benchmark_group("memory");
    group.throughput(Throughput::Elements(1));
    for (keys, limits) in [(1, 1), (KEYS, 1), (KEYS, 8)] {
        let id = BenchmarkId::new(format!("{limits} limits"), format!("{keys} keys"));
        let store = MemoryStore::new();
        let meter = Algorithm::TokenBucket.meter(WIDE);
        let mut at = 0;
        group.bench_function(id, |b| {
            b.iter(|| {
                // A stride that is prime to the number of keys visits all of them, out of order.
                at = (at + 7_919) % keys;
                let hit = |n: usize| Hit {
                    key: names[(at + n) % KEYS].as_bytes(),
                    meter,
                    cost: 1,
                    shadow: false,
                    lease: 0,
                };
                let hits: [_; 8] = std::array::from_fn(hit);
                store.acquire(&hits[..limits]).try_now().ok()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, bucket, memory);
criterion_main!(benches);

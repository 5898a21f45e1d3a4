//! What the layer adds to a service, with the states in memory: each figure includes making the
//! request and dropping the response, so the layer's own is the difference to `bare`.

#![expect(clippy::expect_used, reason = "a benchmark that cannot go on should say so and end")]

mod service;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tollgate::{Limiter, MemoryStore};
use tower::{Layer as _, service_fn};

use self::service::{FORMATS, KEYS, NARROW, WIDE, hello, limit, peers, send};

fn layer(c: &mut Criterion) {
    let mut group = c.benchmark_group("layer");
    group.throughput(Throughput::Elements(1));
    let mut bare = service_fn(hello);
    let mut peers = peers();
    group.bench_function("bare", |b| b.iter(|| send(&mut bare, peers())));
    for (outcome, quota) in [("allowed", WIDE), ("denied", NARROW)] {
        for (name, format) in FORMATS {
            let limiter = Limiter::new(MemoryStore::new());
            let mut limited = limit(&limiter, quota, format).layer(service_fn(hello));
            for _ in 0..KEYS {
                drop(send(&mut limited, peers()));
            }
            group.bench_function(format!("{outcome}, {name}"), |b| {
                b.iter(|| send(&mut limited, peers()));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, layer);
criterion_main!(benches);

//! A store over a cluster grants exactly what a quota says, by a clock of the test's own: each key lies in
//! a slot of its own.

use std::{os::unix::fs::FileExt as _, path::Path, process::Command, time::Duration};

use tempfile::NamedTempFile;
use tokio::runtime::Runtime;
use tollgate::{
    Algorithm, Quota, RedisStore, Stamp, Standing, Store as _, Timestamp,
    algorithm::Meter,
    store::{Answer, Hit, Refund},
};

use crate::{
    exact::conformance::{self, Backend, exact, latest, lock, lock_name, oracle, refund, waits},
    support::{RedisServer, cluster::Cluster, skip},
};

/// A cluster of one node, which is enough for all slots; others would take it for dead when its clock
/// is set.
struct Still {
    runtime: Runtime,
    clock: NamedTempFile,
    cluster: Cluster,
    store: RedisStore,
}

impl Still {
    /// None, where there is no C compiler for the clock, or another system.
    fn start() -> Option<Self> {
        if !cfg!(all(target_os = "linux", target_pointer_width = "64")) {
            return None;
        }
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("servers-still.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/cluster/still.c");
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source);
        compile.status().ok().filter(std::process::ExitStatus::success)?;
        let clock = NamedTempFile::new().expect("a temporary file");
        clock.as_file().write_all_at(&0_i64.to_ne_bytes(), 0).expect("a file to write to");
        let environment =
            vec![("LD_PRELOAD", library.into()), ("TOLLGATE_STILL", clock.path().into())];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (cluster, store) = runtime.block_on(async {
            let cluster = Cluster::start_in(environment).await;
            let store = RedisStore::builder(cluster.url()).deadline(Duration::from_secs(10));
            (cluster, store.connect().await.expect("a cluster"))
        });
        Some(Self { runtime, clock, cluster, store })
    }

    fn server(&self) -> &RedisServer {
        self.cluster.node(0)
    }

    /// Whether scripts are told the time of this clock, and no other.
    fn stands(&self) -> bool {
        let micros = 1_764_461_091_000_007;
        self.set(micros);
        let hits = [Hit::new(b"{look}", Algorithm::TokenBucket.meter(Quota::per_day(1)), 0)];
        let look = || self.runtime.block_on(async { self.store.acquire(&hits).await });
        (0..20).all(|_| look().expect("an answer").now == Timestamp::from_micros(micros))
    }

    fn acquire(&self, micros: u64, hits: &[Hit<'_>]) -> Answer {
        self.set(micros);
        let answer = self.runtime.block_on(async { self.store.acquire(hits).await });
        let answer = answer.unwrap_or_else(|error| panic!("{error}: {hits:?}"));
        assert_eq!(answer.now, Timestamp::from_micros(micros));
        answer
    }

    fn set(&self, micros: u64) {
        self.clock.as_file().write_all_at(&micros.to_ne_bytes(), 0).expect("a file to write to");
    }
}

fn name(key: &str) -> String {
    format!("{{{key}}}")
}

impl Backend for Still {
    fn together(&mut self, micros: u64, hits: &[Hit<'_>]) -> Vec<Standing> {
        let names: Vec<String> =
            hits.iter().map(|hit| name(str::from_utf8(hit.key).expect("a text"))).collect();
        let hits: Vec<Hit<'_>> =
            hits.iter().zip(&names).map(|(hit, key)| Hit { key: key.as_bytes(), ..*hit }).collect();
        self.acquire(micros, &hits).standings.to_vec()
    }

    fn decide(&mut self, meter: Meter, now: Timestamp, asks: &[(&str, u64)]) -> Vec<Standing> {
        let ask = |(key, cost): &(&str, u64)| {
            let hit = Hit::new(key.as_bytes(), meter, *cost);
            self.together(now.as_micros(), &[hit])[0]
        };
        asks.iter().map(ask).collect()
    }

    fn guarded(&mut self, meters: [Meter; 2], micros: u64, key: &str, cost: u64) -> [Standing; 2] {
        let names = [name(key), lock_name(&name(key))];
        let hits = [0, 1].map(|at| Hit::new(names[at].as_bytes(), meters[at], cost));
        let standings = self.acquire(micros, &hits).standings;
        [standings[0], standings[1]]
    }

    fn refund(&mut self, meter: Meter, micros: u64, key: &str, units: u64, stamp: Stamp) {
        self.set(micros);
        let name = name(key);
        let refunds = [Refund { key: name.as_bytes(), meter, units, stamp }];
        self.runtime.block_on(async { self.store.refund(&refunds).await }).expect("an answer");
    }

    fn reset(&mut self, key: &str) {
        let key = match key.strip_suffix(":lk") {
            Some(guarded) => lock_name(&name(guarded)),
            None => name(key),
        };
        let keys = [key.as_bytes()];
        self.runtime.block_on(async { self.store.reset(&keys).await }).expect("an answer");
    }
}

#[test]
fn a_store_over_a_cluster_decides_as_all_others_do() {
    let Some(mut still) = Still::start() else { return };
    if !still.stands() {
        skip(still.server(), "its clock goes on by another one, which cannot be set");
        return;
    }
    // Without those that ask one key many thousand times, which is no matter of the cluster.
    let run: &[fn(&mut Still)] = &[
        conformance::all_or_none::a_request_charges_all_of_its_limits_or_none,
        exact::waits_to_the_microsecond,
        exact::patient_callers_get_the_rate,
        exact::no_step_back_locks_for_longer_than_a_refill,
        waits::waits_of_windows_to_the_microsecond,
        waits::windows_hold_all_units_and_no_more,
        waits::looks_take_nothing,
        oracle::windows_answer_as_an_oracle_does,
        oracle::windows_with_refunds_answer_as_an_oracle_does,
        refund::all_comes_back_at_once_in_whole_or_in_parts,
        refund::what_another_charge_took_stays_taken,
        refund::a_bucket_gives_back_no_more_than_the_charge_has_left,
        refund::a_charge_that_counts_no_longer_gives_back_nothing,
        refund::a_log_gives_back_to_the_last_microsecond,
        refund::windows_give_back_until_they_end,
        refund::a_log_gives_back_what_a_step_of_the_clock_brought_here,
        refund::a_refund_from_after_now_leaves_no_more_than_the_limit,
        refund::nothing_comes_back_to_a_key_that_is_not_there,
        refund::a_key_that_is_forgotten_begins_anew,
        refund::a_bucket_with_refunds_keeps_its_bound,
        lock::the_denial_of_the_number_locks,
        lock::a_lock_ends_to_the_microsecond,
        lock::asking_does_not_prolong_a_lock,
        lock::denials_are_forgotten_a_refill_after_the_first,
        lock::no_step_of_the_clock_locks_for_longer,
        lock::a_changed_length_only_shortens_what_is_locked,
        lock::a_lock_that_is_forgotten_is_lifted,
        latest::so_many_units_come_back_and_no_more,
        latest::what_was_taken_before_stays_taken,
        latest::a_bucket_gets_the_time_of_its_units,
        latest::a_log_loses_its_latest_units,
        latest::a_large_log_loses_just_so_many,
        latest::a_counter_loses_those_of_its_window_first,
        latest::a_window_loses_those_of_the_present_one,
        latest::what_lies_ahead_is_brought_back_first,
        latest::nothing_comes_back_where_nothing_was_taken,
    ];
    for run in run {
        still.server().command(&["FLUSHALL"]);
        run(&mut still);
    }
}

//! Redis fails in each way that can be brought about, while 64 callers go on, under each policy for it.
//! Checked is what becomes of their requests, and that none hangs; how long they take is only told.
//!
//! `cargo test` has each event last for a moment, under one of the policies. The whole matrix, and its
//! table in `target/chaos.md`, takes some five minutes:
//!
//! ```sh
//! tests/chaos/run            # or TOLLGATE_CHAOS=full cargo test --test chaos
//! tests/chaos/run frozen     # those events whose names contain this
//! ```
//!
//! `TOLLGATE_CHAOS_TABLE` names another file for the table. For root, the first has a network namespace
//! of its own, in which packets to the server can be dropped; else a proxy swallows them.

#![cfg(test)]
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "what is measured here is real time")]

mod callers;
mod cell;
#[path = "../clock/mod.rs"]
mod clock;
mod event;
mod filter;
mod support;
mod table;
mod world;

use event::Event;

macro_rules! events {
    ($($name:ident: $event:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                table::run(Event::$event).await;
            }
        )*
    };
}

events! {
    killed: Killed,
    killed_and_restarted_empty: Restarted,
    frozen: Frozen,
    behind_a_black_hole: BlackHole,
    with_replies_that_come_too_late: Late,
    slower_by_5_ms: Slow5,
    slower_by_50_ms: Slow50,
    slower_by_500_ms: Slow500,
    slower_by_chance: Jitter,
    with_connections_cut_in_the_middle_of_replies: Cut,
    forgetting_its_scripts: Flush,
    read_only: ReadOnly,
    out_of_memory: OutOfMemory,
    unable_to_save: Misconf,
    loading: Loading,
    busy_with_a_script: Busy,
    full_of_clients: MaxClients,
    with_another_password: Password,
    without_a_right: Right,
    with_a_clock_an_hour_ahead: ClockAhead,
    with_a_clock_an_hour_behind: ClockBehind,
}

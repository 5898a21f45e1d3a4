//! What happens to Redis.

use std::{
    fmt,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use crate::{books::Books, support::RedisServer};

const RECOVERY: Duration = Duration::from_secs(20);
/// Decisions by Redis after which it is back.
const BACK: u64 = 200;

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It is killed, and is away for a while.
    Kill,
    /// It is killed, and back at once.
    Restart,
    /// It stands still.
    Freeze,
    /// It forgets all scripts.
    Flush,
    /// It closes all connections.
    Cut,
}

/// How often what happened.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Times that the server began anew, empty.
    pub(crate) restarts: u64,
    kills: u64,
    freezes: u64,
    flushes: u64,
    cuts: u64,
}

/// Lets all of it happen, in random order, until the time has come. Fails if Redis decides nothing
/// after one of them. In the end, the server runs.
pub(crate) async fn play(server: &mut RedisServer, books: &Books, until: Instant) -> Faults {
    let mut faults = Faults::default();
    let mut order = [Fault::Kill, Fault::Restart, Fault::Freeze, Fault::Flush, Fault::Cut];
    recovers(books).await;
    loop {
        fastrand::shuffle(&mut order);
        for fault in order {
            sleep(millis(200..1_500)).await;
            if Instant::now() >= until {
                return faults;
            }
            faults.apply(fault, server).await;
            recovers(books).await;
        }
    }
}

impl Faults {
    async fn apply(&mut self, fault: Fault, server: &mut RedisServer) {
        match fault {
            Fault::Kill => {
                server.kill();
                sleep(millis(50..1_500)).await;
                server.restart().await;
                self.kills += 1;
                self.restarts += 1;
            }
            Fault::Restart => {
                server.restart().await;
                self.restarts += 1;
            }
            Fault::Freeze => {
                server.freeze();
                sleep(millis(20..2_000)).await;
                server.thaw();
                self.freezes += 1;
            }
            Fault::Flush => {
                for _ in 0..fastrand::u8(1..20) {
                    server.command(&["SCRIPT", "FLUSH"]);
                    sleep(millis(0..20)).await;
                }
                self.flushes += 1;
            }
            Fault::Cut => {
                server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
                self.cuts += 1;
            }
        }
    }
}

/// Waits until Redis decides again.
async fn recovers(books: &Books) {
    let (begun, before) = (Instant::now(), books.decided());
    while books.decided() < before + BACK {
        assert!(begun.elapsed() < RECOVERY, "Redis does not decide again:\n{books}");
        sleep(Duration::from_millis(5)).await;
    }
}

fn millis(range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(fastrand::u64(range))
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { restarts, kills, freezes, flushes, cuts } = self;
        write!(
            f,
            "{restarts} starts from empty, {kills} of them after a while; {freezes} freezes; scripts \
             forgotten {flushes} times; all connections closed {cuts} times"
        )
    }
}

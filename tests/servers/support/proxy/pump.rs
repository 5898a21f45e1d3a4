//! One direction of one connection.

use std::{collections::VecDeque, io};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::tcp::{OwnedReadHalf, OwnedWriteHalf},
    sync::watch,
    time::{Instant, sleep_until},
};

use super::settings::Settings;

/// As many chunks may be under way; then the sender has to wait.
const CAPACITY: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Reply,
}

/// Forwards until the end of the stream or until the connection has to be closed.
pub(super) async fn pump(
    direction: Direction,
    number: u64,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    settings: &watch::Sender<Settings>,
) -> io::Result<()> {
    let mut changes = settings.subscribe();
    let mut under_way: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut buffer = vec![0; 16 * 1024];
    let mut lost_a_reply = false;
    let mut open = true;
    while open || !under_way.is_empty() {
        let now = *changes.borrow_and_update();
        let swallow = now.swallow_replies && direction == Direction::Reply;
        if lost_a_reply && !swallow {
            return Ok(());
        }
        let due = under_way.front().map(|(due, _)| *due);
        let silent = now.black_hole || now.silent == Some(number);
        let may_write = due.is_some() && !silent;
        let may_read = open && !silent && under_way.len() < CAPACITY;
        tokio::select! {
            biased;
            changed = changes.changed() => changed.map_err(io::Error::other)?,
            () = sleep_until(due.unwrap_or_else(Instant::now)), if may_write => {
                let Some((_, chunk)) = under_way.pop_front() else { continue };
                if swallow {
                    lost_a_reply = true;
                } else if direction == Direction::Reply && take_cut_midway(settings) {
                    return to.write_all(&chunk[..chunk.len() / 2]).await;
                } else {
                    to.write_all(&chunk).await?;
                }
            }
            read = from.read(&mut buffer), if may_read => {
                match read? {
                    0 => open = false,
                    length => {
                        let due = arrival(&now, direction, under_way.back().map(|(due, _)| *due));
                        under_way.push_back((due, buffer[..length].to_vec()));
                    }
                }
            }
        }
    }
    Ok(())
}

/// When a chunk read now arrives: late, but not before the one ahead of it.
fn arrival(now: &Settings, direction: Direction, ahead: Option<Instant>) -> Instant {
    let due = Instant::now() + now.delay[direction as usize] + now.jitter.mul_f64(fastrand::f64());
    ahead.map_or(due, |ahead| due.max(ahead))
}

/// Whether this connection is the one to be cut; if so, no other is.
fn take_cut_midway(settings: &watch::Sender<Settings>) -> bool {
    let mut taken = false;
    settings.send_if_modified(|now| {
        taken = std::mem::take(&mut now.cut_midway);
        false
    });
    taken
}

//! A server, and what happens to it.

use std::{path::PathBuf, time::Duration};

use crate::{
    clock::Clock,
    event::Event,
    filter::Filter,
    support::{Connection, Proxy, RedisServer},
};

const HOUR: i64 = 3_600;
/// What a server loads in two milliseconds.
const KEY_BYTES: &str = "100000";
const RIGHTS: &str = "on >word ~tg1:* resetchannels -@all \
                      +evalsha +eval +script|load +time +get +set +incrby +expireat +ping";

#[derive(Debug)]
pub(crate) struct World {
    event: Event,
    server: RedisServer,
    filter: Option<Filter>,
    proxy: Option<Proxy>,
    clock: Option<Clock>,
    /// A connection that keeps the server from answering others.
    other: Option<Connection>,
}

impl World {
    /// Prepares for an event that lasts for so long. None, if it cannot be brought about here.
    pub(crate) async fn new(event: Event, hold: Duration) -> Option<Self> {
        let clock = if event.needs_clock() { Some(Clock::new()?) } else { None };
        let args: &[&str] = match event {
            Event::Loading => &["--key-load-delay", "2000", "--rdbcompression", "no"],
            Event::Password => &["--requirepass", "right"],
            _ => &[],
        };
        let environment = clock.as_ref().map(Clock::environment).unwrap_or_default();
        let server = RedisServer::start_in(args, environment).await;
        match event {
            Event::Loading => {
                let keys = (hold + Duration::from_millis(500)).as_millis() / 2;
                server.command(&["DEBUG", "POPULATE", &keys.to_string(), "k", KEY_BYTES]);
            }
            Event::Right => {
                let rights: Vec<_> = RIGHTS.split_whitespace().collect();
                server.command(&[&["ACL", "SETUSER", "app"], rights.as_slice()].concat());
            }
            _ => {}
        }
        let filter = Filter::new(server.port());
        let proxied = event.needs_proxy() && !(event == Event::BlackHole && filter.is_some());
        let proxy = if proxied { Some(Proxy::start(server.port()).await) } else { None };
        Some(Self { event, server, filter, proxy, clock, other: None })
    }

    pub(crate) fn url(&self) -> String {
        match (&self.proxy, self.event) {
            (Some(proxy), _) => proxy.url(),
            (None, Event::Right) => format!("redis://app:word@127.0.0.1:{}", self.server.port()),
            (None, _) => self.server.url(),
        }
    }

    pub(crate) fn server(&self) -> &'static str {
        self.server.name()
    }

    /// How often somebody tried to connect so far, if that can be told.
    pub(crate) fn attempts(&self) -> Option<u64> {
        if let Some(proxy) = &self.proxy {
            return Some(proxy.accepted());
        }
        if let Some(filter) = &self.filter {
            return Some(filter.attempts());
        }
        if matches!(self.event, Event::Killed | Event::Restarted) {
            // Those that are refused leave no trace.
            return None;
        }
        // A frozen server accepts what came meanwhile before it answers a second command.
        self.server.command(&["TIME"]);
        let info = self.server.command(&["INFO", "stats"]);
        let count = |name: &str| -> Option<u64> {
            info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        };
        Some(count("total_connections_received:")? + count("rejected_connections:")?)
    }

    /// The event begins: what is asked after this has what it brings.
    pub(crate) async fn begin(&mut self) {
        let millis = Duration::from_millis;
        match self.event {
            Event::Killed => self.server.kill(),
            Event::Restarted => self.server.restart().await,
            Event::Frozen => self.server.freeze(),
            Event::BlackHole => self.black_hole(true),
            Event::Late => self.proxy().delay_replies(millis(150)),
            Event::Slow5 => self.proxy().delay_replies(millis(5)),
            Event::Slow50 => self.proxy().delay(millis(25)),
            Event::Slow500 => self.proxy().delay(millis(250)),
            Event::Jitter => self.proxy().jitter(millis(30)),
            Event::Cut | Event::Flush => {}
            Event::ReadOnly => self.command(&["REPLICAOF", "127.0.0.1", "1"]),
            Event::OutOfMemory => self.command(&["CONFIG", "SET", "maxmemory", "1"]),
            Event::Misconf => {
                std::fs::create_dir(self.dump()).expect("a folder where the file should be");
                self.command(&["CONFIG", "SET", "save", "3600 1"]);
                self.command(&["BGSAVE"]);
                self.until_error("MISCONF", &["SET", "x", "y"]).await;
            }
            Event::Loading => {
                self.occupy(&["DEBUG", "RELOAD"]);
                self.until_error("LOADING", &["PING"]).await;
            }
            Event::Busy => {
                self.command(&["CONFIG", "SET", "lua-time-limit", "5"]);
                self.occupy(&["EVAL", "while true do end", "0"]);
                self.until_error("BUSY", &["PING"]).await;
            }
            Event::MaxClients => {
                self.command(&["CONFIG", "SET", "maxclients", "1"]);
                self.disconnect();
            }
            Event::Password => {
                self.command(&["CONFIG", "SET", "requirepass", "other"]);
                self.disconnect();
            }
            Event::Right => self.command(&["ACL", "SETUSER", "app", "-evalsha"]),
            Event::ClockAhead => self.clock().step(HOUR),
            Event::ClockBehind => self.clock().step(-HOUR),
        }
    }

    /// Comes every few milliseconds while the event lasts.
    pub(crate) fn tick(&mut self, number: u32) {
        match self.event {
            Event::Cut if number.is_multiple_of(4) => self.proxy().cut_next_reply_midway(),
            Event::Flush => self.command(&["SCRIPT", "FLUSH"]),
            _ => {}
        }
    }

    /// The event ends: when this returns, the server is well.
    pub(crate) async fn end(&mut self) {
        match self.event {
            Event::Killed => self.server.restart().await,
            Event::Frozen => self.server.thaw(),
            Event::BlackHole => self.black_hole(false),
            Event::Late | Event::Slow5 | Event::Slow50 | Event::Slow500 => {
                self.proxy().delay(Duration::ZERO);
            }
            Event::Jitter => self.proxy().jitter(Duration::ZERO),
            Event::Restarted | Event::Cut | Event::Flush => {}
            Event::ReadOnly => self.command(&["REPLICAOF", "NO", "ONE"]),
            Event::OutOfMemory => self.command(&["CONFIG", "SET", "maxmemory", "0"]),
            Event::Misconf => {
                std::fs::remove_dir(self.dump()).expect("the folder goes");
                // Without points at which to save, one that failed does not matter.
                self.command(&["CONFIG", "SET", "save", ""]);
            }
            Event::Loading => self.release(),
            Event::Busy => {
                self.command(&["SCRIPT", "KILL"]);
                self.release();
            }
            Event::MaxClients => self.command(&["CONFIG", "SET", "maxclients", "1000"]),
            Event::Password => self.command(&["CONFIG", "SET", "requirepass", "right"]),
            Event::Right => self.command(&["ACL", "SETUSER", "app", "+evalsha"]),
            Event::ClockAhead | Event::ClockBehind => self.clock().step(0),
        }
    }

    fn command(&self, args: &[&str]) {
        self.server.command(args);
    }

    fn disconnect(&self) {
        self.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    }

    fn occupy(&mut self, args: &[&str]) {
        let other = self.other.insert(self.server.connection());
        other.send(args).expect("it begins");
    }

    /// Waits until the server is done with what occupied it.
    fn release(&mut self) {
        let mut other = self.other.take().expect("it was occupied");
        _ = other.receive().expect("an answer");
    }

    async fn until_error(&self, code: &str, args: &[&str]) {
        let found = async {
            while !matches!(self.server.try_command(args), Err(error) if error.starts_with(code)) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let bound = Duration::from_secs(20);
        tokio::time::timeout(bound, found).await.unwrap_or_else(|_| panic!("no {code}"));
    }

    fn black_hole(&self, on: bool) {
        match &self.filter {
            Some(filter) => filter.drop_all(on),
            None => self.proxy().black_hole(on),
        }
    }

    /// Where the server would save to.
    fn dump(&self) -> PathBuf {
        let folder = self.server.command(&["CONFIG", "GET", "dir"]).replace("dir\n", "");
        PathBuf::from(folder).join("dump.rdb")
    }

    fn proxy(&self) -> &Proxy {
        self.proxy.as_ref().expect("the event has a proxy")
    }

    fn clock(&self) -> &Clock {
        self.clock.as_ref().expect("the event has a clock")
    }
}

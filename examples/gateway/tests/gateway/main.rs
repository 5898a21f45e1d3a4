//! Tests of the program: it is started, asked over HTTP, and ended by a signal.

#![cfg(unix)]

mod admin;
mod alone;
mod arguments;
mod authority;
mod config;
mod keys;
mod logs;
mod page;
#[cfg(test)]
#[path = "../../../../tests/servers/support/port.rs"]
mod port;
mod proxy;
mod redis;
mod spread;
mod support;

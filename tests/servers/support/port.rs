//! Ports on the loopback interface.

use std::{
    collections::HashSet,
    net::{Ipv4Addr, TcpListener},
    sync::Mutex,
};

/// A loopback port that nobody listens on at the moment.
///
/// It lies below the range from which systems take the ports of outgoing connections. A client
/// that keeps connecting to a dead server's port in that range would, sooner or later, be given
/// that very port and end up connected to itself.
///
/// No port is given twice: clients of a server that was killed would write to the next one there.
pub(crate) fn free_port() -> u16 {
    static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    let mut given = GIVEN.lock().unwrap();
    let given = given.get_or_insert_default();
    let port = (0..1000)
        .map(|_| fastrand::u16(20_000..32_000))
        .find(|port| {
            !given.contains(port) && TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()
        })
        .expect("no free port between 20000 and 32000 on the loopback interface");
    given.insert(port);
    port
}

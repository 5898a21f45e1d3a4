//! Addresses: of the peer, and of the client behind proxies.

mod fuzz;
mod oracle;
mod settings;
mod table;
mod unix;

use std::net::SocketAddr;

use http::{HeaderValue, Request};
use tollgate::{ClientIp, KeyExtractor, PeerIp};

use super::{extract, text};

pub(super) const TRUSTED: [&str; 3] = ["10.0.0.0/8", "fd00::/8", "198.51.100.1"];
pub(super) const PROXY: &str = "10.0.0.1";

pub(super) fn client() -> ClientIp {
    ClientIp::x_forwarded_for(TRUSTED).unwrap()
}

pub(super) fn from_peer(peer: &str) -> Request<()> {
    let mut request = Request::new(());
    let peer = SocketAddr::new(peer.parse().unwrap(), 4711);
    request.extensions_mut().insert(peer);
    request
}

pub(super) fn with_lines<L: AsRef<[u8]>>(
    mut request: Request<()>,
    header: &'static str,
    lines: &[L],
) -> Request<()> {
    for line in lines {
        let line = HeaderValue::from_bytes(line.as_ref()).unwrap();
        request.headers_mut().append(header, line);
    }
    request
}

pub(super) fn forwarded<L: AsRef<[u8]>>(peer: &str, lines: &[L]) -> Request<()> {
    with_lines(from_peer(peer), "x-forwarded-for", lines)
}

fn counted(peer: &str, lines: &[&str]) -> String {
    text(&client(), &forwarded(peer, lines))
}

#[test]
fn addresses_that_a_client_can_choose_freely_share_a_key() {
    for (peer, key) in [
        ("192.0.2.7", "ip:192.0.2.7"),
        ("2001:db8:0:1::", "ip:2001:db8:0:1::/64"),
        ("2001:db8:0:1:2:3:4:5", "ip:2001:db8:0:1::/64"),
        ("2001:db8:0:1:ffff:ffff:ffff:ffff", "ip:2001:db8:0:1::/64"),
        ("2001:db8:0:2:2:3:4:5", "ip:2001:db8:0:2::/64"),
        ("::1", "ip:::/64"),
    ] {
        for extractor in [Box::new(PeerIp) as Box<dyn KeyExtractor>, Box::new(ClientIp::peer())] {
            assert_eq!(text(&extractor, &from_peer(peer)), key);
        }
    }
}

#[test]
fn ipv4_is_written_as_everybody_writes_it() {
    for octet in 0..=255_u8 {
        for address in [[octet, 0, 10, 200], [1, octet, octet, 99], [255, 100, 9, octet]] {
            let address = std::net::Ipv4Addr::from(address).to_string();
            assert_eq!(text(&PeerIp, &from_peer(&address)), format!("ip:{address}"));
        }
    }
}

#[test]
fn ipv4_written_as_ipv6_is_counted_as_ipv4() {
    for peer in ["::ffff:192.0.2.7", "::ffff:c000:207"] {
        assert_eq!(text(&PeerIp, &from_peer(peer)), "ip:192.0.2.7");
        assert_eq!(counted(PROXY, &[peer]), "ip:192.0.2.7");
        let prefix = ClientIp::peer().ipv4_prefix(24).unwrap();
        assert_eq!(text(&prefix, &from_peer(peer)), "ip:192.0.2.0/24");
    }
    assert_eq!(counted("::ffff:10.0.0.1", &["192.0.2.7, ::ffff:10.0.0.2"]), "ip:192.0.2.7");
}

#[test]
fn prefixes_are_those_that_were_asked_for() {
    let peer = "2001:db8:1234:5678:9abc:def0:1234:5678";
    for (bits, key) in [
        (32, "ip:2001:db8::/32"),
        (48, "ip:2001:db8:1234::/48"),
        (56, "ip:2001:db8:1234:5600::/56"),
        (127, "ip:2001:db8:1234:5678:9abc:def0:1234:5678/127"),
        (128, "ip:2001:db8:1234:5678:9abc:def0:1234:5678/128"),
    ] {
        let extractor = ClientIp::peer().ipv6_prefix(bits).unwrap();
        assert_eq!(text(&extractor, &from_peer(peer)), key);
        assert_eq!(text(&extractor, &from_peer("192.0.2.7")), "ip:192.0.2.7");
    }
    for (bits, key) in [(8, "ip:192.0.0.0/8"), (31, "ip:192.0.2.6/31"), (32, "ip:192.0.2.7")] {
        let extractor = client().ipv4_prefix(bits).unwrap();
        assert_eq!(text(&extractor, &forwarded(PROXY, &["192.0.2.7"])), key);
        assert_eq!(text(&extractor, &from_peer("2001:db8::1")), "ip:2001:db8::/64");
    }
}

#[test]
fn a_prefix_out_of_bounds_is_refused_with_value_and_bounds() {
    for bits in [0, 31, 129, 255] {
        let error = ClientIp::peer().ipv6_prefix(bits).unwrap_err().to_string();
        for part in ["IPv6", &format!(" {bits} "), "32", "128"] {
            assert!(error.contains(part), "{error}");
        }
    }
    for bits in [0, 7, 33, 255] {
        let error = ClientIp::peer().ipv4_prefix(bits).unwrap_err().to_string();
        for part in ["IPv4", &format!(" {bits} "), "8", "32"] {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn a_missing_peer_says_what_to_add() {
    for extractor in [Box::new(PeerIp) as Box<dyn KeyExtractor>, Box::new(client())] {
        let error = extract(&extractor, &Request::new(())).unwrap_err();
        assert!(error.is_setup());
        assert_eq!(error.status(), 400);
        let message = error.to_string();
        let line = "axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>())";
        assert!(message.contains(line), "{message}");
        assert!(message.contains("`SocketAddr` into the extensions"), "{message}");
    }
}

#[cfg(feature = "axum")]
#[test]
fn axum_tells_the_peer_also_in_tests() {
    use axum::extract::connect_info::{ConnectInfo, MockConnectInfo};

    let address = |last| SocketAddr::from(([192, 0, 2, last], 4711));
    let mut request = Request::new(());
    request.extensions_mut().insert(address(1));
    assert_eq!(text(&PeerIp, &request), "ip:192.0.2.1");
    request.extensions_mut().insert(MockConnectInfo(address(2)));
    assert_eq!(text(&PeerIp, &request), "ip:192.0.2.2");
    request.extensions_mut().insert(ConnectInfo(address(3)));
    assert_eq!(text(&PeerIp, &request), "ip:192.0.2.3");
    // As axum's own documentation writes it.
    let mut request = Request::new(());
    request.extensions_mut().insert(MockConnectInfo(SocketAddr::from(([0, 0, 0, 0], 1337))));
    assert_eq!(text(&PeerIp, &request), "ip:0.0.0.0");
}

#[test]
fn the_header_counts_only_from_a_trusted_peer() {
    for peer in ["192.0.2.1", "11.0.0.1", "198.51.100.2"] {
        assert_eq!(counted(peer, &["6.6.6.6"]), format!("ip:{peer}"));
    }
    assert_eq!(counted("2001:db8::1", &["6.6.6.6"]), "ip:2001:db8::/64");
    for peer in [PROXY, "10.255.255.255", "198.51.100.1", "fd12::1", "::ffff:10.0.0.1"] {
        assert_eq!(counted(peer, &["192.0.2.7"]), "ip:192.0.2.7", "{peer}");
    }
    assert_eq!(text(&ClientIp::peer(), &forwarded(PROXY, &["192.0.2.7"])), "ip:10.0.0.1");
}

#[test]
fn the_client_is_the_first_untrusted_address_from_the_right() {
    let cases: [&[&str]; 8] = [
        &["192.0.2.7"],
        &["6.6.6.6, 192.0.2.7"],
        &["6.6.6.6,192.0.2.7,10.0.0.2"],
        &["6.6.6.6 ,\t192.0.2.7 , 10.0.0.2\t, fd00::2, 198.51.100.1"],
        &["6.6.6.6", "192.0.2.7"],
        &["6.6.6.6, 192.0.2.7", "10.0.0.2", "10.0.0.3"],
        &["192.0.2.7", "10.0.0.2, 10.0.0.3"],
        &["rubbish, 10.0.0.9", "", "6.6.6.6, 192.0.2.7"],
    ];
    for lines in cases {
        assert_eq!(counted(PROXY, lines), "ip:192.0.2.7", "{lines:?}");
    }
}

#[test]
fn neither_port_nor_zone_makes_a_new_bucket() {
    for element in ["192.0.2.7", "192.0.2.7:1", "192.0.2.7:65535", "[::ffff:192.0.2.7]:80"] {
        assert_eq!(counted(PROXY, &[element]), "ip:192.0.2.7", "{element}");
    }
    for element in [
        "2001:db8::1",
        "2001:DB8:0:0::1",
        "[2001:db8::1]",
        "[2001:db8::1]:4711",
        "2001:db8::1%eth0",
        "[2001:db8::1%eth0]:4711",
    ] {
        assert_eq!(counted(PROXY, &[element]), "ip:2001:db8::/64", "{element}");
    }
    for hop in ["10.0.0.2:80", "[fd00::2]:80", "fd00::2%1", "[::ffff:10.0.0.2]:80"] {
        let line = format!("192.0.2.7, {hop}");
        assert_eq!(counted(PROXY, &[&line]), "ip:192.0.2.7", "{hop}");
    }
}

#[test]
fn anything_but_an_address_stops_the_walk_at_the_peer() {
    let elements: [&[u8]; 30] = [
        b"",
        b" ",
        b"unknown",
        b"_hidden",
        b"for=192.0.2.9",
        b"localhost",
        b"\"192.0.2.9\"",
        b"192.0.2.9:",
        b"192.0.2.9:+80",
        b"192.0.2.9:65536",
        b"192.0.2.9:80:80",
        b":80",
        b"192.0.2.9%eth0",
        b"192.0.2.9/32",
        b"192.0.2",
        b"192.0.2.09",
        b"192.0.2.9 192.0.2.9",
        b"3221225481",
        b"[192.0.2.9]",
        b"[2001:db8::9",
        b"2001:db8::9]",
        b"[2001:db8::9]80",
        b"[2001:db8::9]:",
        b"[2001:db8::9]:+1",
        b"2001:db8::9%",
        b"0.0.0.0",
        b"::",
        b"::ffff:0.0.0.0",
        b"unix:",
        b"\xff192.0.2.9",
    ];
    for element in elements {
        let shown = element.escape_ascii();
        let line =
            |before: &str, after: &str| [before.as_bytes(), element, after.as_bytes()].concat();
        let stopped = forwarded(PROXY, &[line("6.6.6.6, ", ", 10.0.0.2")]);
        assert_eq!(text(&client(), &stopped), "ip:10.0.0.1", "{shown}");
        let own_line = forwarded(PROXY, &[b"6.6.6.6", element, b"10.0.0.2"]);
        assert_eq!(text(&client(), &own_line), "ip:10.0.0.1", "{shown}");
        let unread = forwarded(PROXY, &[line("", ", 192.0.2.7, 10.0.0.2")]);
        assert_eq!(text(&client(), &unread), "ip:192.0.2.7", "{shown}");
    }
}

#[test]
fn without_an_untrusted_address_the_peer_is_counted() {
    let cases: [&[&str]; 5] =
        [&[], &[""], &["10.0.0.2"], &["10.0.0.2, fd00::2"], &["10.0.0.3", "10.0.0.2"]];
    for lines in cases {
        assert_eq!(counted(PROXY, lines), "ip:10.0.0.1", "{lines:?}");
    }
}

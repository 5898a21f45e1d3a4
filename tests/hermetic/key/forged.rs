//! No client chooses the address that it is counted by.

mod by_rfc;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::{collection::vec, prelude::*, sample::select};

use tollgate::ClientIp;

use super::{
    extract,
    ip::{client, forwarded},
    text,
};

fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).into()),
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).to_ipv6_mapped().into()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from_bits(bits).into()),
    ]
}

pub(super) fn is_trusted(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.octets()[0] == 10 || address.octets() == [198, 51, 100, 1],
        IpAddr::V6(address) => address.octets()[0] == 0xfd,
    }
}

fn client_address() -> impl Strategy<Value = IpAddr> {
    any_address().prop_filter("a client", |address| {
        !is_trusted(*address) && !address.to_canonical().is_unspecified()
    })
}

fn real_address() -> impl Strategy<Value = IpAddr> {
    any_address().prop_filter("real", |address| !address.to_canonical().is_unspecified())
}

fn proxy_address() -> impl Strategy<Value = IpAddr> {
    let addresses = ["10.0.0.1", "10.9.9.9", "::ffff:10.0.0.7", "fd00::1", "198.51.100.1"];
    select(addresses.map(|address| address.parse().unwrap()).to_vec())
}

/// The address in one of the forms in which proxies write it.
fn written(address: impl Strategy<Value = IpAddr>) -> impl Strategy<Value = (IpAddr, String)> {
    (address, any::<u16>(), 0..4).prop_map(|(address, port, form)| {
        let text = match (form, address) {
            (1, _) => SocketAddr::new(address, port).to_string(),
            (2, IpAddr::V6(address)) => format!("[{address}]"),
            (3, IpAddr::V6(address)) => format!("{address}%eth{port}"),
            _ => address.to_string(),
        };
        (address, text)
    })
}

/// What a client may send: addresses, addresses of proxies, and any bytes that HTTP lets through.
fn sent_line() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(b'\t'), 0x20..=0x7e_u8, 0x80..=0xff_u8, Just(b','), Just(b'"')];
    let element = prop_oneof![
        vec(byte, 0..12),
        written(any_address()).prop_map(|(_, text)| text.into_bytes()),
        written(proxy_address()).prop_map(|(_, text)| text.into_bytes()),
        "[0-9a-f.:%\\[\\]]{0,20}".prop_map(String::into_bytes),
        select(vec!["", " ", "unknown", "for=\"[", "_x", "::", "0.0.0.0"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ];
    vec(element, 0..5).prop_map(|elements| elements.join(&b','))
}

/// Appends as proxies do: to the last line, or on a line of its own.
fn append(lines: &mut Vec<Vec<u8>>, element: &str, own_line: bool) {
    match lines.last_mut() {
        Some(line) if !own_line => {
            line.extend_from_slice(b", ");
            line.extend_from_slice(element.as_bytes());
        }
        _ => lines.push(element.into()),
    }
}

fn key_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("ip:{address}"),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("ip:{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

/// What proxies in the middle may append where they are only counted.
fn any_element() -> impl Strategy<Value = String> {
    let named = select(vec!["unknown", "unix:", "_x", "proxy.internal", "0.0.0.0", "\""]);
    prop_oneof![written(any_address()).prop_map(|(_, text)| text), named.prop_map(String::from)]
}

proptest! {
    #[test]
    fn whatever_a_client_sends_the_address_that_a_proxy_saw_is_counted(
        mut lines in vec(sent_line(), 0..4),
        (real, seen) in written(client_address()),
        own_line: bool,
        hops in vec((written(proxy_address()), any::<bool>()), 0..4),
        peer in proxy_address(),
    ) {
        append(&mut lines, &seen, own_line);
        for ((_, hop), own_line) in &hops {
            append(&mut lines, hop, *own_line);
        }
        let request = forwarded(&peer.to_string(), &lines);
        prop_assert_eq!(text(&client(), &request), key_of(real));
    }

    #[test]
    fn whatever_a_client_sends_the_address_that_the_outermost_of_so_many_saw_is_counted(
        mut lines in vec(sent_line(), 0..4),
        (real, seen) in written(real_address()),
        own_line: bool,
        hops in vec((any_element(), any::<bool>()), 0..4),
        peer in any_address(),
    ) {
        append(&mut lines, &seen, own_line);
        for (hop, own_line) in &hops {
            append(&mut lines, hop, *own_line);
        }
        let count = u8::try_from(hops.len() + 1).unwrap();
        let client = ClientIp::x_forwarded_for_hops(count).unwrap().reject_unknown();
        let request = forwarded(&peer.to_string(), &lines);
        prop_assert_eq!(text(&client, &request), key_of(real));
    }

    #[test]
    fn whatever_an_untrusted_peer_sends_it_is_counted_itself(
        lines in vec(sent_line(), 0..4),
        peer in client_address(),
    ) {
        let request = forwarded(&peer.to_string(), &lines);
        prop_assert_eq!(text(&client(), &request), key_of(peer));
    }

    #[test]
    fn whatever_is_sent_through_a_proxy_that_appends_nothing_is_counted(
        lines in vec(sent_line(), 0..4),
        peer in proxy_address(),
    ) {
        prop_assert!(extract(&client(), &forwarded(&peer.to_string(), &lines)).is_ok());
    }
}

//! The same with `Forwarded`.

use std::{fmt::Write as _, net::IpAddr};

use proptest::{collection::vec, prelude::*, sample::select};
use tollgate::ClientIp;

use super::{any_address, append, client_address, key_of, proxy_address, real_address};
use crate::key::{
    extract,
    ip::{TRUSTED, from_peer, with_lines},
    text,
};

/// Text that a proxy may put between quotes, however strange.
fn quoted() -> impl Strategy<Value = String> {
    "[ -~]{0,12}".prop_map(|text| {
        let mut quoted = String::from('"');
        for char in text.chars() {
            if matches!(char, '"' | '\\') {
                quoted.push('\\');
            }
            quoted.push(char);
        }
        quoted + "\""
    })
}

/// A parameter beside `for`; hosts come from clients, and proxies quote them.
fn parameter() -> impl Strategy<Value = String> {
    let named =
        select(vec!["proto=https", "by=203.0.113.43", "by=_x", "", "by=\"[2001:db8::9]:80\""]);
    prop_oneof![
        named.prop_map(String::from),
        quoted().prop_map(|text| format!("host={text}")),
        quoted().prop_map(|text| format!("x-for={text}")),
    ]
}

/// An element with this node among other parameters.
fn element(node: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let name = select(vec!["for", "For", "FOR"]);
    (name, node, vec(parameter(), 0..3), vec(parameter(), 0..3)).prop_map(
        |(name, node, mut parameters, after)| {
            parameters.push(format!("{name}={node}"));
            parameters.extend(after);
            parameters.join(";")
        },
    )
}

/// The node of an address, in one of the forms that are legal.
fn node(address: IpAddr, form: u8, port: u16) -> String {
    let host = match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    match (form, address) {
        (0, IpAddr::V4(_)) => host,
        (1, _) => format!("\"{host}:{port}\""),
        (2, _) => format!("\"{host}:_p{port}\""),
        (3, _) => {
            let mut escaped = String::from('"');
            for char in host.chars() {
                let _ = write!(escaped, "\\{char}");
            }
            escaped + "\""
        }
        _ => format!("\"{host}\""),
    }
}

/// What a proxy appends that saw this address.
fn written(address: impl Strategy<Value = IpAddr>) -> impl Strategy<Value = (IpAddr, String)> {
    (address, 0..5_u8, any::<u16>()).prop_flat_map(|(address, form, port)| {
        element(Just(node(address, form, port))).prop_map(move |text| (address, text))
    })
}

/// What proxies in the middle may append where they are only counted.
fn any_element() -> impl Strategy<Value = String> {
    let hidden = select(vec!["unknown", "_x", "\"_x:_y\"", "\"unknown:80\"", "\"\\\"\""]);
    prop_oneof![
        written(any_address()).prop_map(|(_, text)| text),
        element(hidden.prop_map(String::from)),
        Just("proto=http".into()),
    ]
}

/// What a client may send: legal elements, pieces of them, and any bytes that HTTP lets through.
fn sent_line() -> impl Strategy<Value = Vec<u8>> {
    let byte =
        prop_oneof![Just(b'\t'), 0x20..=0x7e_u8, 0x80..=0xff_u8, select(b",\"\\;=\"".to_vec()),];
    let piece = prop_oneof![
        vec(byte, 0..12),
        written(any_address()).prop_map(|(_, text)| text.into_bytes()),
        written(proxy_address()).prop_map(|(_, text)| text.into_bytes()),
        select(vec!["for=\"", "\"", "\\", "\\\"", ",", ";", "for=", "for=\"[", "by=\"\\"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ];
    (vec(piece, 0..5), select(vec![",", "", ";"]))
        .prop_map(|(pieces, between)| pieces.join(between.as_bytes()))
}

fn by_ranges() -> ClientIp {
    ClientIp::forwarded(TRUSTED).unwrap()
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
        let request = with_lines(from_peer(&peer.to_string()), "forwarded", &lines);
        prop_assert_eq!(text(&by_ranges().reject_unknown(), &request), key_of(real));
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
        let client = ClientIp::forwarded_hops(count).unwrap().reject_unknown();
        let request = with_lines(from_peer(&peer.to_string()), "forwarded", &lines);
        prop_assert_eq!(text(&client, &request), key_of(real));
    }

    #[test]
    fn whatever_an_untrusted_peer_sends_it_is_counted_itself(
        lines in vec(sent_line(), 0..4),
        peer in client_address(),
    ) {
        let request = with_lines(from_peer(&peer.to_string()), "forwarded", &lines);
        prop_assert_eq!(text(&by_ranges(), &request), key_of(peer));
    }

    #[test]
    fn whatever_is_sent_through_a_proxy_that_appends_nothing_is_counted(
        lines in vec(sent_line(), 0..4),
        peer in proxy_address(),
    ) {
        let request = with_lines(from_peer(&peer.to_string()), "forwarded", &lines);
        prop_assert!(extract(&by_ranges(), &request).is_ok());
    }
}

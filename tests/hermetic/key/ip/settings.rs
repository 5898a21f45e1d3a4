//! Whom to trust, and how.

use tollgate::{ClientIp, PeerIp, RequestHead};

use super::{PROXY, client, forwarded, from_peer, with_lines};
use crate::key::{extract, text};

#[test]
fn what_cannot_be_trusted_is_refused_with_its_value() {
    for item in
        ["", "10.0.0.0/33", "10.0.0", "::1/129", "proxy.internal", "10.0.0.1:80", "10.0.0.0/8,::1"]
    {
        for error in [
            ClientIp::x_forwarded_for(["::1", item]).unwrap_err(),
            ClientIp::forwarded(["::1", item]).unwrap_err(),
            ClientIp::header("x-real-ip", ["::1", item]).unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(error.contains(&format!("{item:?}")), "{error}");
        }
    }
    for error in [
        ClientIp::x_forwarded_for(Vec::<String>::new()).unwrap_err(),
        ClientIp::forwarded(Vec::<String>::new()).unwrap_err(),
        ClientIp::header("x-real-ip", Vec::<String>::new()).unwrap_err(),
    ] {
        assert!(error.to_string().contains("ClientIp::peer()"), "{error}");
    }
}

#[test]
fn trusted_ranges_are_read_as_they_are_written() {
    for (trusted, inside, outside) in [
        ("10.1.2.3/8", "10.200.0.1", "11.0.0.1"),
        (" 10.0.0.0/8 ", "10.0.0.1", "11.0.0.1"),
        ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
        ("fd00::/8", "fdff::1", "fe00::1"),
        ("::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"),
        ("::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.1"),
        ("2000::/3", "2001:db8::1", "10.0.0.1"),
    ] {
        let extractor = ClientIp::x_forwarded_for([String::from(trusted)]).unwrap();
        let key = |peer| text(&extractor, &forwarded(peer, &["192.0.2.7"]));
        assert_eq!(key(inside), "ip:192.0.2.7", "{trusted}");
        assert_ne!(key(outside), "ip:192.0.2.7", "{trusted}");
    }
}

#[test]
fn a_range_of_everybody_is_refused() {
    for everybody in ["0.0.0.0/0", "::/0", "10.0.0.0/0", "::ffff:0.0.0.0/96"] {
        let error = ClientIp::x_forwarded_for([everybody]).unwrap_err().to_string();
        assert!(error.contains(everybody) && error.contains("count of proxies"), "{error}");
    }
}

#[test]
fn a_number_of_proxies_out_of_bounds_is_refused_with_value_and_bounds() {
    for hops in [0, 17, 255] {
        for error in [
            ClientIp::x_forwarded_for_hops(hops).unwrap_err().to_string(),
            ClientIp::forwarded_hops(hops).unwrap_err().to_string(),
        ] {
            assert!(error.starts_with(&format!("{hops} ")), "{error}");
            assert!(error.contains("1 to 16"), "{error}");
            assert_eq!(error.contains("ClientIp::peer()"), hops == 0, "{error}");
        }
    }
    assert!(ClientIp::x_forwarded_for_hops(16).is_ok() && ClientIp::forwarded_hops(1).is_ok());
}

#[test]
fn a_header_that_is_no_single_address_is_refused_with_its_name() {
    for name in ["", "x real ip", "x-real-ip:", "gr\u{fc}n"] {
        let error = ClientIp::header(name, ["::1"]).unwrap_err().to_string();
        assert!(error.contains(&format!("{name:?}")), "{error}");
    }
    for (name, constructor) in
        [("X-Forwarded-For", "ClientIp::x_forwarded_for"), ("Forwarded", "ClientIp::forwarded")]
    {
        let error = ClientIp::header(name, ["::1"]).unwrap_err().to_string();
        assert!(error.contains(&format!("`{constructor}`")), "{error}");
    }
}

#[test]
fn no_other_header_is_read_than_the_one_that_was_chosen() {
    let headers = ["x-forwarded-for", "forwarded", "x-real-ip", "cf-connecting-ip"];
    let extractors = [
        client(),
        ClientIp::forwarded([PROXY]).unwrap(),
        ClientIp::header("X-Real-IP", [PROXY]).unwrap(),
        ClientIp::header("cf-connecting-ip", [PROXY]).unwrap(),
    ];
    for (chosen, extractor) in extractors.iter().enumerate() {
        for (sent, header) in headers.into_iter().enumerate() {
            let line = if header == "forwarded" { "for=192.0.2.7" } else { "192.0.2.7" };
            let request = with_lines(from_peer(PROXY), header, &[line]);
            let expected = if chosen == sent { "ip:192.0.2.7" } else { "ip:10.0.0.1" };
            assert_eq!(text(extractor, &request), expected, "{chosen}, {header}");
        }
    }
}

#[test]
fn the_address_is_whole_whatever_it_is_counted_by() {
    let extractor = client().ipv4_prefix(8).unwrap().ipv6_prefix(32).unwrap();
    let address = |line: &str| {
        extractor.address(RequestHead::new(&forwarded(PROXY, &[line]))).unwrap().to_string()
    };
    assert_eq!(address("192.0.2.7:80"), "192.0.2.7");
    assert_eq!(address("::ffff:192.0.2.7"), "192.0.2.7");
    assert_eq!(address("[2001:db8:1:2:3:4:5:6]:80"), "2001:db8:1:2:3:4:5:6");
    assert_eq!(address("rubbish"), PROXY);
    let strict = extractor.clone().reject_unknown();
    let error = strict.address(RequestHead::new(&forwarded(PROXY, &["rubbish"]))).unwrap_err();
    assert_eq!(Err(error), extract(&strict, &forwarded(PROXY, &["rubbish"])));
    let peer = ClientIp::peer().address(RequestHead::new(&from_peer("::ffff:192.0.2.7")));
    assert_eq!(peer.unwrap().to_string(), "192.0.2.7");
}

#[test]
fn the_key_of_an_address_is_the_key_of_its_requests() {
    for address in ["192.0.2.7", "2001:db8::7", "::ffff:192.0.2.7"] {
        let key = client().key(address.parse().unwrap());
        assert_eq!(Ok(&key), extract(&client(), &forwarded(PROXY, &[address])).as_ref());
        assert_eq!(key, PeerIp::key(address.parse().unwrap()));
    }
}

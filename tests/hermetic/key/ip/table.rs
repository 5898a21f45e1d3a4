//! What becomes of the headers that there are, and of those that attackers make of them.

use http::Request;
use tollgate::ClientIp;

use self::How::{Forwarded, ForwardedHops, List, ListHops, Single};
use super::{from_peer, with_lines};
use crate::key::{extract, text};

/// How the client is told.
#[derive(Clone, Copy, Debug)]
enum How {
    List,
    ListHops(u8),
    Forwarded,
    ForwardedHops(u8),
    Single,
}

impl How {
    fn extractor(self) -> ClientIp {
        // The third is 172.16.0.0/12, the last one all of 100.64.0.0/10.
        let trusted = ["10.0.0.0/8", "fd00::/8", "::ffff:172.16.0.0/108", "::ffff:6440:0/106"];
        match self {
            List => ClientIp::x_forwarded_for(trusted),
            ListHops(hops) => ClientIp::x_forwarded_for_hops(hops),
            Forwarded => ClientIp::forwarded(trusted),
            ForwardedHops(hops) => ClientIp::forwarded_hops(hops),
            Single => ClientIp::header("X-Real-IP", trusted),
        }
        .unwrap()
    }

    fn request(self, peer: &str, lines: &[&str]) -> Request<()> {
        let header = match self {
            List | ListHops(_) => "x-forwarded-for",
            Forwarded | ForwardedHops(_) => "forwarded",
            Single => "x-real-ip",
        };
        with_lines(from_peer(peer), header, lines)
    }
}

const PROXY: &str = "10.0.0.1";
const CLIENT: &str = "192.0.2.7";
const V6: &str = "2001:db8::/64";
/// The header does not tell.
const UNKNOWN: &str = "";

type Case = (How, &'static [&'static str], &'static str);

/// What a trusted proxy sends, and who is counted.
const CASES: &[Case] = &[
    // Lists.
    (List, &["192.0.2.7"], CLIENT),
    (List, &["6.6.6.6, 192.0.2.7, 172.31.255.255, 100.127.0.1"], CLIENT),
    (List, &["192.0.2.7, 172.32.0.1"], "172.32.0.1"),
    (List, &["192.0.2.7, 100.128.0.1"], "100.128.0.1"),
    (List, &["192.0.2.7, ::ffff:172.16.0.9, [::ffff:100.64.0.1]:80"], CLIENT),
    (List, &["for=6.6.6.6, \"", "192.0.2.7", "10.0.0.2"], CLIENT),
    (List, &["\"6.6.6.6, 192.0.2.7"], CLIENT),
    (List, &["192.0.2.7,"], UNKNOWN),
    (List, &["192.0.2.7", ""], UNKNOWN),
    (List, &["192.0.2.7,,10.0.0.2"], UNKNOWN),
    (List, &["192.0.2.7, unknown, 10.0.0.2"], UNKNOWN),
    (List, &["192.0.2.7%a, 10.0.0.2"], UNKNOWN),
    (List, &["2001:db8::7%a b"], UNKNOWN),
    (List, &["fd00::1%\", 10.0.0.2"], UNKNOWN),
    // By their number.
    (ListHops(1), &["192.0.2.7"], CLIENT),
    (ListHops(1), &["6.6.6.6", "192.0.2.7:4711"], CLIENT),
    (ListHops(1), &["192.0.2.7, 10.0.0.2"], "10.0.0.2"),
    (ListHops(2), &["6.6.6.6, 192.0.2.7, 203.0.113.1"], CLIENT),
    (ListHops(2), &["6.6.6.6", "192.0.2.7", "203.0.113.1"], CLIENT),
    (ListHops(3), &["\", 192.0.2.7, unknown", "unix:"], CLIENT),
    (ListHops(2), &["::ffff:192.0.2.7, 203.0.113.1"], CLIENT),
    (ListHops(2), &["192.0.2.7"], UNKNOWN),
    (ListHops(16), &["6.6.6.6, 192.0.2.7, 203.0.113.1"], UNKNOWN),
    (ListHops(2), &["unknown, 203.0.113.1"], UNKNOWN),
    (ListHops(2), &["192.0.2.7, "], UNKNOWN),
    (ListHops(2), &["192.0.2.7", ""], UNKNOWN),
    (ListHops(1), &["0.0.0.0"], UNKNOWN),
    (ListHops(1), &[], UNKNOWN),
    // As the RFC has it.
    (Forwarded, &["for=192.0.2.7"], CLIENT),
    (Forwarded, &["FOR=192.0.2.7;PROTO=http;By=203.0.113.43"], CLIENT),
    (Forwarded, &["proto=http;host=example.com;for=192.0.2.7"], CLIENT),
    (Forwarded, &["for=\"192.0.2.7\""], CLIENT),
    (Forwarded, &["for=\"192.0.2.7:47011\""], CLIENT),
    (Forwarded, &["for=\"192.0.2.7:_port-1\""], CLIENT),
    (Forwarded, &["for=\"\\1\\9\\2.0.2.7\\:80\""], CLIENT),
    (Forwarded, &["for=\"[2001:db8::7]\""], V6),
    (Forwarded, &["For=\"[2001:db8::7]:4711\""], V6),
    (Forwarded, &["for=\"[2001:DB8::7%eth0]\""], V6),
    (Forwarded, &["for=\"[::ffff:192.0.2.7]:80\""], CLIENT),
    (Forwarded, &["for=6.6.6.6, for=192.0.2.7, for=10.0.0.2"], CLIENT),
    (Forwarded, &["for=6.6.6.6", "for=192.0.2.7", "for=10.0.0.2"], CLIENT),
    (Forwarded, &["for=192.0.2.7,for=\"10.0.0.2:80\",for=\"[fd00::2]:80\""], CLIENT),
    (Forwarded, &["for=192.0.2.7, for=\"[::ffff:172.16.0.1]\";by=_a"], CLIENT),
    (Forwarded, &["for=192.0.2.7; proto=https ;\tby=_a"], CLIENT),
    (Forwarded, &[";;for=192.0.2.7;;proto=https;"], CLIENT),
    (Forwarded, &["host=\"a, for=6.6.6.6\";for=192.0.2.7"], CLIENT),
    (Forwarded, &["host=\"a\\\", for=6.6.6.6\";for=192.0.2.7"], CLIENT),
    (Forwarded, &["for=192.0.2.7;host=\"\\\\\", for=10.0.0.2;host=\"\\\\\\\"\""], CLIENT),
    (Forwarded, &["for=192.0.2.7;ext=\"\";host=\"caf\u{e9};for=6.6.6.6\""], CLIENT),
    // Quotes that a client does not close.
    (Forwarded, &["for=\"6.6.6.6, for=192.0.2.7"], CLIENT),
    (Forwarded, &["for=\"6.6.6.6, for=\"192.0.2.7:80\""], CLIENT),
    (Forwarded, &["for=\", for=\"[2001:db8::7]:80\", for=\"[fd00::1]\""], V6),
    (Forwarded, &["\"", "for=192.0.2.7, for=10.0.0.2"], CLIENT),
    (Forwarded, &["for=6.6.6.6;by=\"\\, for=192.0.2.7"], CLIENT),
    (Forwarded, &["for=6.6.6.6;by=\"\\\", for=\"192.0.2.7\""], CLIENT),
    (Forwarded, &["for=6.6.6.6\\, for=192.0.2.7;by=\"a\\\\\""], CLIENT),
    // What is no address, and what is no element.
    (Forwarded, &["for=unknown"], UNKNOWN),
    (Forwarded, &["for=192.0.2.7, for=Unknown, for=10.0.0.2"], UNKNOWN),
    (Forwarded, &["for=192.0.2.7, for=_hidden, for=10.0.0.2"], UNKNOWN),
    (Forwarded, &["for=192.0.2.7, for=\"_hidden:80\""], UNKNOWN),
    (Forwarded, &["for=192.0.2.7, proto=https"], UNKNOWN),
    (Forwarded, &["for=192.0.2.7;for=10.0.0.2"], UNKNOWN),
    (Forwarded, &["for=10.0.0.2;For=192.0.2.7"], UNKNOWN),
    (Forwarded, &["for=192.0.2.7, "], UNKNOWN),
    (Forwarded, &["for=192.0.2.7, ;"], UNKNOWN),
    (Forwarded, &["for=192.0.2.7", ""], UNKNOWN),
    (Forwarded, &["for=192.0.2.7, for=10.0.0.2;by=\""], UNKNOWN),
    (Forwarded, &["for=192.0.2.7\", for=10.0.0.2"], UNKNOWN),
    (Forwarded, &["for=\"192.0.2.7\\\""], UNKNOWN),
    (Forwarded, &["for=\"192.0.2.7\"x"], UNKNOWN),
    (Forwarded, &["for=\"192.0.2.7\"proto=http"], UNKNOWN),
    (Forwarded, &["for=192.0.2.7 proto=http"], UNKNOWN),
    (Forwarded, &["for=192.0.2.7:80"], UNKNOWN),
    (Forwarded, &["for=2001:db8::7"], UNKNOWN),
    (Forwarded, &["for=[2001:db8::7]"], UNKNOWN),
    (Forwarded, &["for=\"2001:db8::7\""], UNKNOWN),
    (Forwarded, &["for=\"[192.0.2.7]\""], UNKNOWN),
    (Forwarded, &["for=\"192.0.2.7:\""], UNKNOWN),
    (Forwarded, &["for=\"192.0.2.7:_\""], UNKNOWN),
    (Forwarded, &["for=\"192.0.2.7:65536\""], UNKNOWN),
    (Forwarded, &["for=\" 192.0.2.7\""], UNKNOWN),
    (Forwarded, &["for=\"192.0.2.7, 6.6.6.6\""], UNKNOWN),
    (Forwarded, &["for=0.0.0.0"], UNKNOWN),
    (Forwarded, &["for=\"[::]\""], UNKNOWN),
    (Forwarded, &["for=\"[::ffff:0.0.0.0]\""], UNKNOWN),
    (Forwarded, &["for = 192.0.2.7"], UNKNOWN),
    (Forwarded, &["for="], UNKNOWN),
    (Forwarded, &["=192.0.2.7"], UNKNOWN),
    (Forwarded, &["for"], UNKNOWN),
    (Forwarded, &["192.0.2.7"], UNKNOWN),
    (Forwarded, &["xfor=192.0.2.7"], UNKNOWN),
    (Forwarded, &["f\u{f6}r=192.0.2.7"], UNKNOWN),
    (Forwarded, &["for=10.0.0.2, for=10.0.0.3"], UNKNOWN),
    (Forwarded, &[], UNKNOWN),
    // By their number.
    (ForwardedHops(1), &["for=6.6.6.6, for=192.0.2.7"], CLIENT),
    (ForwardedHops(2), &["for=\", for=192.0.2.7", "for=203.0.113.1"], CLIENT),
    (ForwardedHops(2), &["for=192.0.2.7, for=unknown"], CLIENT),
    (ForwardedHops(3), &["for=192.0.2.7, for=\"_a:_b\", by=\"a, b\""], CLIENT),
    (ForwardedHops(2), &["for=_hidden, for=10.0.0.2"], UNKNOWN),
    (ForwardedHops(2), &["for=192.0.2.7"], UNKNOWN),
    (ForwardedHops(2), &["for=192.0.2.7, "], UNKNOWN),
    (ForwardedHops(2), &["for=192.0.2.7, rubbish"], UNKNOWN),
    (ForwardedHops(2), &["for=192.0.2.7, for=10.0.0.2;for=10.0.0.2"], UNKNOWN),
    // One address.
    (Single, &["192.0.2.7"], CLIENT),
    (Single, &["\t192.0.2.7 "], CLIENT),
    (Single, &["192.0.2.7:4711"], CLIENT),
    (Single, &["::ffff:192.0.2.7"], CLIENT),
    (Single, &["2001:db8::7"], V6),
    (Single, &["[2001:db8::7%1]:80"], V6),
    (Single, &["10.0.0.9"], "10.0.0.9"),
    (Single, &["192.0.2.7", "192.0.2.7"], UNKNOWN),
    (Single, &["6.6.6.6, 192.0.2.7"], UNKNOWN),
    (Single, &["2001:db8::7%a, 2001:db8:9::7"], UNKNOWN),
    (Single, &["192.0.2.7,"], UNKNOWN),
    (Single, &["192.0.2.7 6.6.6.6"], UNKNOWN),
    (Single, &["\"192.0.2.7\""], UNKNOWN),
    (Single, &["for=192.0.2.7"], UNKNOWN),
    (Single, &["unknown"], UNKNOWN),
    (Single, &["::"], UNKNOWN),
    (Single, &[""], UNKNOWN),
    (Single, &["", "192.0.2.7"], UNKNOWN),
    (Single, &[], UNKNOWN),
];

fn check(how: How, lines: &[&str], key: &str) {
    let context = || {
        let lines = lines.iter().map(|line| &line[..line.len().min(80)]);
        format!("{how:?} {:?}", lines.collect::<Vec<_>>())
    };
    let request = how.request(PROXY, lines);
    let strict = how.extractor().reject_unknown();
    if key == UNKNOWN {
        assert_eq!(text(&how.extractor(), &request), format!("ip:{PROXY}"), "{}", context());
        let error = extract(&strict, &request).unwrap_err();
        assert_eq!(error.status(), 400, "{}", context());
        assert!(!error.is_missing() && !error.is_setup(), "{}", context());
    } else {
        assert_eq!(text(&how.extractor(), &request), format!("ip:{key}"), "{}", context());
        assert_eq!(text(&strict, &request), format!("ip:{key}"), "{}", context());
    }
}

#[test]
fn the_client_is_who_the_proxies_say_and_else_nobody() {
    for (how, lines, key) in CASES {
        check(*how, lines, key);
    }
}

#[test]
fn what_is_very_long_is_read_as_what_is_short() {
    for fill in
        ["6.6.6.6, ", ",", "\"", "\\", "\\\"", "for=\"", "for=6.6.6.6,", "[", ":", "%", "\u{e9}"]
    {
        let mut long = fill.repeat(10_000 / fill.len());
        check(List, &[&format!("{long}, 192.0.2.7, 10.0.0.2")], CLIENT);
        check(ListHops(1), &[&format!("{long}, 192.0.2.7")], CLIENT);
        check(Forwarded, &[&format!("{long}, for=192.0.2.7, for=10.0.0.2")], CLIENT);
        check(ForwardedHops(1), &[&format!("{long}, for=\"192.0.2.7:1\"")], CLIENT);
        check(Single, &[&long], UNKNOWN);
        long.push_str("192.0.2.7\"");
        check(Single, &[&long], UNKNOWN);
        check(Forwarded, &[&long], UNKNOWN);
    }
    let hops = vec!["for=\"[fd00::1]:80\""; 500].join(", ");
    check(Forwarded, &[&format!("\", for=192.0.2.7, {hops}")], CLIENT);
    let escaped = "\\a".repeat(5_000);
    check(Forwarded, &[&format!("for=\"{escaped}\"")], UNKNOWN);
    check(Forwarded, &[&format!("for=192.0.2.7;by=\"{escaped}\"")], CLIENT);
}

#[test]
fn from_a_peer_that_is_not_trusted_nothing_is_believed() {
    for (how, lines, _) in CASES {
        if matches!(how, ListHops(_) | ForwardedHops(_)) {
            continue;
        }
        let request = how.request("192.0.2.99", lines);
        assert_eq!(text(&how.extractor().reject_unknown(), &request), "ip:192.0.2.99");
    }
}

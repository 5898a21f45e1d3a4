//! Random headers, made of what parsers trip over. `TOLLGATE_STEPS` sets how many, and `TOLLGATE_SEED`
//! repeats a run.

use std::{env, net::IpAddr};

use fastrand::Rng;
use http::Request;
use tollgate::{ClientIp, KeyExtractor as _, PeerIp, RequestHead};

use super::{PROXY, TRUSTED, from_peer, oracle, oracle::Element, with_lines};
use crate::key::{forged::is_trusted, text};

const PIECES: &str = r#"for= For= " " \ \" , , ; = [ ] : % unknown _x 192.0.2.7 10.0.0.2 2001:db8::7
    fd00::1 ::ffff:10.0.0.1 0.0.0.0 :: :80 :_p %eth0 proto=https by= é ,for=10.0.0.3 ,10.0.0.3"#;

const ADDRESSES: &str = r#"192.0.2.7 192.0.2.7:80 2001:db8::7 [2001:db8::7]:80 10.0.0.2 10.0.0.3
    10.0.0.4:80 fd00::1%1 ::ffff:10.0.0.1 ::ffff:192.0.2.8 unknown"#;

const ELEMENTS: &str = r#"for=192.0.2.7 for=10.0.0.2 for=10.0.0.2;proto=https for="10.\0.0.2"
    for="192.0.2.7:80" for="[2001:db8::7]:80" by="a,b";for="[fd00::1%1]" for="[::ffff:10.0.0.3]:_p"
    host="\"";for=10.0.0.4 for=10.0.0.5;host="\\" for=unknown by=_x for="[::ffff:192.0.2.8]"
    for=10.0.0.6;for=10.0.0.6"#;

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number: {text:?}")))
}

/// A line of whole elements, or of pieces in any order.
fn line(random: &mut Rng) -> String {
    let kinds = [(PIECES, ""), (ADDRESSES, ", "), (ELEMENTS, ", ")];
    let (parts, between) = random.choice(kinds).unwrap();
    let parts: Vec<_> = parts.split_whitespace().collect();
    let mut line = String::new();
    for index in 0..random.usize(..8) {
        if index > 0 {
            line.push_str(between);
        }
        match random.u8(..24) {
            0 => line.push(random.char(' '..='~')),
            1 => line.push_str(random.choice(["", " ", "\t"]).unwrap()),
            _ => line.push_str(random.choice(&parts).unwrap()),
        }
    }
    line
}

/// Whom the elements tell, or `None` if they do not.
fn by_ranges(elements: &[Element]) -> Option<IpAddr> {
    for element in elements.iter().rev() {
        let address = (*element)??;
        if !is_trusted(address) {
            return Some(address);
        }
    }
    None
}

fn by_hops(elements: &[Element], hops: usize) -> Option<IpAddr> {
    let last = elements.len().checked_sub(hops)?;
    elements[last..].iter().all(Option::is_some).then_some(elements[last]??)
}

/// Checks the key of a request, and that of one who rejects what is unknown.
fn check(extractor: &ClientIp, request: &Request<()>, expected: Option<IpAddr>) {
    let peer = PROXY.parse().unwrap();
    let key = PeerIp::key(expected.unwrap_or(peer));
    assert_eq!(text(extractor, request), key.as_str(), "{:?}", request.headers());
    let strict = extractor.clone().reject_unknown().extract(RequestHead::new(request));
    assert_eq!(strict.ok().map(|keys| keys[0].clone()), expected.map(PeerIp::key));
}

struct Extractors {
    header: &'static str,
    ranges: ClientIp,
    hops: [ClientIp; 3],
    /// What a proxy appends.
    element: &'static str,
}

impl Extractors {
    fn check(&self, lines: &[String], elements: Option<&[Element]>) {
        let request = with_lines(from_peer(PROXY), self.header, lines);
        match elements {
            Some(elements) => {
                check(&self.ranges, &request, by_ranges(elements));
                for (index, extractor) in self.hops.iter().enumerate() {
                    check(extractor, &request, by_hops(elements, index + 1));
                }
            }
            // Nobody knows who is counted, but somebody is.
            None => {
                for extractor in self.hops.iter().chain([&self.ranges]) {
                    assert!(text(extractor, &request).starts_with("ip:"));
                }
            }
        }
        let mut appended = lines.to_vec();
        match appended.last_mut() {
            Some(last) => last.push_str(&format!(", {}", self.element)),
            None => appended.push(self.element.into()),
        }
        let request = with_lines(from_peer(PROXY), self.header, &appended);
        let seen = Some([203, 0, 113, 9].into());
        check(&self.ranges, &request, seen);
        check(&self.hops[0], &request, seen);
    }
}

#[test]
fn random_headers_are_read_as_the_specifications_have_them() {
    let seed = number("TOLLGATE_SEED").unwrap_or_else(|| fastrand::u64(..));
    let mut random = Rng::with_seed(seed);
    let list = Extractors {
        header: "x-forwarded-for",
        ranges: ClientIp::x_forwarded_for(TRUSTED).unwrap(),
        hops: [1, 2, 3].map(|hops| ClientIp::x_forwarded_for_hops(hops).unwrap()),
        element: "203.0.113.9:80",
    };
    let forwarded = Extractors {
        header: "forwarded",
        ranges: ClientIp::forwarded(TRUSTED).unwrap(),
        hops: [1, 2, 3].map(|hops| ClientIp::forwarded_hops(hops).unwrap()),
        element: "proto=https;for=\"203.0.113.9:80\"",
    };
    let mut legal = 0;
    let steps = number("TOLLGATE_STEPS").unwrap_or(5_000);
    for step in 0..steps {
        let lines: Vec<String> = (0..random.usize(..3)).map(|_| line(&mut random)).collect();
        let whole: Option<Vec<_>> = lines.iter().map(|line| oracle::forwarded(line)).collect();
        let whole = whole.map(|lines| lines.concat());
        legal += u64::from(whole.as_ref().is_some_and(|whole| by_ranges(whole).is_some()));
        let run = || {
            list.check(
                &lines,
                Some(&lines.iter().flat_map(|line| oracle::list(line)).collect::<Vec<_>>()),
            );
            forwarded.check(&lines, whole.as_deref());
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        assert!(outcome.is_ok(), "step {step} of TOLLGATE_SEED={seed}: {lines:?}");
    }
    assert!(legal > steps / 50, "{legal} of {steps} told a client");
}

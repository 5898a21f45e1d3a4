//! Two callers are never one key, and a key never breaks out of its place in a longer name.

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use http::Request;
use proptest::{collection::vec, prelude::*};
use tollgate::Key;

use super::{Fixed, extract};

/// Text of few characters, which are those that could mean something in a name: collisions are then
/// found soon, if there are any.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("a"),
        Just("b"),
        Just(":"),
        Just(","),
        Just("%"),
        Just("%2c"),
        Just("%3a"),
        Just("#"),
        Just("{"),
        Just("}"),
        Just("_"),
        Just(" "),
        Just("\0"),
        Just("\n"),
        Just("\u{7f}"),
        Just("\u{e9}"),
        Just(",id:"),
        Just("/"),
    ];
    vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

fn long_text() -> impl Strategy<Value = String> {
    (text(), 115..140_usize, text()).prop_map(|(a, n, b)| a + &"x".repeat(n) + &b)
}

fn identity() -> impl Strategy<Value = String> {
    prop_oneof![8 => text(), 1 => long_text(), 1 => vec(any::<char>(), 0..8).prop_map(String::from_iter)]
}

type Parts = Vec<(String, String)>;

fn joined(parts: &Parts) -> Key {
    let nothing = Request::new(());
    let keys = parts.iter().map(|(kind, identity)| Fixed(Ok(Key::new(kind, identity))));
    let mut keys = keys.collect::<Vec<_>>().into_iter();
    let key = match (keys.next(), keys.next(), keys.next(), keys.next()) {
        (Some(a), None, ..) => extract(&a, &nothing),
        (Some(a), Some(b), None, _) => extract(&(a, b), &nothing),
        (Some(a), Some(b), Some(c), None) => extract(&(a, b, c), &nothing),
        (Some(a), Some(b), Some(c), Some(d)) => extract(&(a, b, c, d), &nothing),
        (None, ..) => unreachable!("there is at least one part"),
    };
    key.unwrap()
}

/// Writes a text in pieces of these sizes, over and over.
struct Pieces<'a>(&'a str, &'a [usize]);

impl fmt::Display for Pieces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        for size in self.1.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let end = rest.char_indices().nth(*size).map_or(rest.len(), |(end, _)| end);
            let (piece, others) = rest.split_at(end);
            f.write_str(piece)?;
            rest = others;
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn two_callers_are_never_one_key(
        callers in vec(vec((text(), identity()), 1..=4), 2..12)
    ) {
        let mut seen = HashMap::<String, Parts>::new();
        for parts in callers {
            let key = joined(&parts);
            if let Some(other) = seen.insert(key.as_str().into(), parts.clone()) {
                prop_assert_eq!(other, parts, "{}", key.as_str());
            }
        }
    }

    #[test]
    fn no_identity_breaks_out_of_its_place_in_a_name(kind in text(), identity in identity()) {
        let key = Key::new(&kind, &identity);
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}' | b',');
        prop_assert!(key.as_str().bytes().all(plain), "{}", key.as_str());
        prop_assert!(key.as_str().contains(':'));
        prop_assert!(key.as_str().len() <= 3 * (kind.len() + 128) + 1);
    }

    #[test]
    fn how_an_identity_is_written_out_makes_no_new_bucket(
        identity in prop_oneof![identity(), long_text()],
        sizes in vec(1..90_usize, 1..5),
    ) {
        let whole = Key::new("id", &identity);
        prop_assert_eq!(Key::new("id", Pieces(&identity, &sizes)), whole);
    }
}

#[test]
fn identities_that_look_alike_are_kept_apart_by_their_kind() {
    let kinds =
        ["ip", "apikey", "claim", "id", "header.x", "header_x", "header-x", "", "a b", "a_b"];
    let keys = kinds.map(|kind| Key::new(kind, "1.2.3.4"));
    assert_eq!(HashSet::from(keys).len(), kinds.len());
}

#[test]
fn every_identity_of_up_to_128_bytes_is_kept_and_a_longer_one_digested() {
    let [kept, digested, other] = [128, 129, 130].map(|n| Key::new("id", "x".repeat(n)));
    assert_eq!(kept.as_str(), format!("id:{}", "x".repeat(128)));
    // A new version digests as the old one did.
    assert_eq!(digested.as_str(), "id:#3bad17d3dbb2998c92070101f3aee0b4");
    assert_ne!(digested, other);
}

#[test]
fn an_identity_cannot_pose_as_the_digest_of_another() {
    let key = Key::new("id", "x".repeat(129));
    let digest = key.as_str().strip_prefix("id:").unwrap();
    assert!(digest.starts_with('#'));
    assert_ne!(Key::new("id", digest), key);
}

#[test]
fn strings_and_numbers_are_keys_of_one_kind() {
    let seven = Key::new("id", "7");
    for key in
        [Key::from("7"), Key::from(String::from("7")), Key::from(&String::from("7")), Key::from(7)]
    {
        assert_eq!(key, seven);
    }
}

#[test]
fn a_key_in_a_log_shows_no_identity() {
    let [alice, bob] = ["alice", "bob"].map(|name| format!("{:?}", Key::new("user", name)));
    assert!(alice.starts_with("Key(user:#"), "{alice}");
    assert!(!alice.contains("alice"), "{alice}");
    assert_ne!(alice, bob);
}

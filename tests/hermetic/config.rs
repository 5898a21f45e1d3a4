//! Policies from files.

mod bad;
mod fields;
mod keys;
mod published;
mod reload;
mod round;
mod text;
mod world;

use tollgate::{Key, KeyExtractor, config::Extractors, key};

/// Counts by a header, as if by what a program has verified.
fn by(name: &'static str) -> impl KeyExtractor {
    key::from_fn(move |head| Some(Key::new(name, head.header(name)?)))
}

fn extractors() -> Extractors {
    Extractors::new().with("user", by("user")).with("claim:org", by("org"))
}

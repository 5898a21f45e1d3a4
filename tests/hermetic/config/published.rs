//! Limits that well-known services publish, from the files of the examples: what passes, when it is free again,
//! and by whom it is told apart.

mod apis;
mod tokens;
mod visitors;

use std::{fs, path::Path};

use http::Request;
use tollgate::{
    ClientIp, Key, RequestHead,
    config::{self, Extractors},
    key,
};

use super::{
    by,
    world::{World, saying},
};

/// What the programs register that the files are written for.
fn extractors() -> Extractors {
    let names = [
        "account",
        "app",
        "bot",
        "class",
        "email",
        "host",
        "mode",
        "model",
        "organisation",
        "tenant",
        "token",
        "user",
    ];
    let own = names.into_iter().fold(Extractors::new(), |own, name| own.with(name, by(name)));
    let domains = |head: RequestHead<'_>| {
        let domains = head.header("domain")?.split(' ');
        Some(domains.map(|name| Key::new("domain", name)).collect::<Vec<_>>())
    };
    let visitor = |head: RequestHead<'_>| {
        let address = head.extension::<std::net::SocketAddr>()?;
        head.header("user").is_none().then(|| Key::new("visitor", address.ip()))
    };
    own.with("domain", key::from_fn(domains))
        .with("visitor", key::from_fn(visitor))
        .with("net48", ClientIp::peer().ipv6_prefix(48).unwrap())
}

fn world(name: &str) -> World {
    World::of_example(&format!("{name}.toml"), &extractors())
}

fn of_all(request: Request<()>, headers: &[(&'static str, &str)]) -> Request<()> {
    headers.iter().fold(request, |request, (name, value)| saying(request, name, value))
}

#[test]
fn each_file_says_whose_limits_they_are_and_what_is_left_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/policies");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let policies = config::from_file(&path, &extractors()).unwrap_or_else(|it| panic!("{it}"));
        assert!(policies.policies().len() > 0);
        let text = fs::read_to_string(&path).unwrap();
        let comment: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
        let comment = comment.join("\n");
        assert!(comment.contains("Left out:") || comment.contains("cannot say"), "{path:?}");
        let name = path.file_stem().unwrap().to_str().unwrap();
        // Each has a test here.
        let tests = [
            include_str!("published/apis.rs"),
            include_str!("published/tokens.rs"),
            include_str!("published/visitors.rs"),
        ];
        assert!(tests.concat().contains(&format!("world(\"{name}\")")), "{name}");
        files += 1;
    }
    assert!(files >= 10);
}

//! Some things are known in one place only.

use super::{only, rust, sources};

#[test]
fn only_the_redis_store_names_its_client() {
    only(&["deadpool_redis", "deadpool"], &rust(), |path| path.starts_with("src/store/redis/"));
    // Beside the module of that name, its parent and the root.
    let naming = |path: &str| {
        path.starts_with("src/store/redis/") || path == "src/store/mod.rs" || path == "src/lib.rs"
    };
    only(&["redis"], &rust(), naming);
}

#[test]
fn only_one_file_names_what_tls_is_made_of() {
    only(&["rustls"], &rust(), |path| path == "src/store/redis/tls.rs");
}

#[test]
fn only_the_layer_for_tokens_names_what_they_are_made_of() {
    only(&["jsonwebtoken", "base64"], &rust(), |path| path.starts_with("src/auth/jwt/"));
}

#[test]
fn only_tokens_and_configurations_are_read_by_serde() {
    let reads = |path: &str| path.starts_with("src/auth/jwt/") || path.starts_with("src/config/");
    only(&["serde", "serde_json"], &rust(), reads);
    only(&["toml", "fs"], &rust(), |path| path.starts_with("src/config/"));
}

#[test]
fn only_telemetry_names_tracing_and_metrics() {
    only(&["tracing", "metrics"], &rust(), |path| path.starts_with("src/telemetry/"));
}

#[test]
fn a_store_sees_no_http_and_no_policy() {
    let store = |path: &str| !path.starts_with("src/store/");
    only(&["http", "RequestHead", "Policy", "KeyExtractor"], &rust(), store);
}

#[test]
fn the_arithmetic_reads_no_clock_and_does_no_io() {
    let words = [
        "Clock",
        "Instant",
        "SystemTime",
        "now()",
        "async",
        "await",
        "tokio",
        "std::io",
        "std::fs",
        "std::net",
        "std::env",
        "Mutex",
        "Atomic",
        "static",
        "fastrand",
    ];
    only(&words, &rust(), |path| !path.starts_with("src/algorithm/"));
}

#[test]
fn only_one_file_reads_the_clocks_of_the_system() {
    only(&["Instant", "SystemTime"], &rust(), |path| path == "src/time.rs");
}

#[test]
fn each_feature_is_asked_for_in_one_place() {
    let places = [
        ("metrics", &["src/telemetry/mod.rs"][..]),
        ("axum", &["src/key/ip/peer.rs", "src/key/route.rs"]),
        ("redis", &["src/lib.rs", "src/store/mod.rs"]),
        ("redis-cluster", &["src/store/redis/mod.rs", "src/store/redis/builder.rs"]),
        ("redis-sentinel", &["src/store/redis/mod.rs"]),
        ("tls", &["src/store/redis/mod.rs"]),
        (
            "jwt",
            &["src/lib.rs", "src/auth/mod.rs", "src/config/extractors.rs", "src/telemetry/mod.rs"],
        ),
        ("config", &["src/lib.rs", "src/policy/origin.rs"]),
    ];
    for (feature, places) in places {
        let asked = format!("feature = \"{feature}\"");
        let files = rust();
        for file in files.iter().filter(|file| !places.contains(&&*file.path)) {
            assert!(!file.code().any(|(_, line)| line.contains(&asked)), "{}: {asked}", file.path);
        }
    }
}

#[test]
fn no_test_of_this_process_sleeps_or_reads_a_clock() {
    // Put together here, so that this file does not name them.
    let sleeps = ["thread::sl", "time::sl"].map(|start| format!("{start}eep"));
    let clocks = ["Instant", "SystemTime"].map(|kind| format!("{kind}::n{}", "ow"));
    for file in sources(&["tests/hermetic"], "rs") {
        for word in sleeps.iter().chain(&clocks) {
            assert_eq!(file.word(word), Vec::<String>::new());
        }
    }
}

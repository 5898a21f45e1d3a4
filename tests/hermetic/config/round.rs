//! What is read can be written, and is the same when it is read again.

use tollgate::config::Config;

use super::extractors;

/// With every field.
const FULL: &str = r#"
exempt = ["GET /healthz"]

[client_ip]
header = "x-forwarded-for"
trusted = ["10.0.0.0/8", "::1"]
reject_unknown = true
ipv4_prefix = 24
ipv6_prefix = 56

[[policy]]
name = "login"
routes = ["POST /login", "/in"]
one_slot = true
on_missing_key = "reject:403"
on_failure = { misconfigured = "deny", otherwise = "local:0.5" }
deny = { addresses = ["192.0.2.0/24"] }

[[policy.limit]]
name = "tries"
key = "ip"
quota = "5/m"
lockout = { for = "1h", after = 3, status = 403 }

[[policy]]
name = "api"
otherwise = true
on_failure = "local:0.25"
allow = { addresses = ["10.0.0.0/8"], key = "user", keys = ["user:1"] }

[[policy.limit]]
name = "burst"
key = ["user", "ip"]
quota = "20/s"
burst = 40
cost = 2
scope = "all"
lease = 4
tiers = { pro = "200/s", big = { quota = "200/s", burst = 900 }, internal = "unlimited" }
overrides = [
    { key = ["user:42", "ip:192.0.2.7"], quota = "1000/s", burst = 2000, until = 2027-01-01T00:00:00Z },
    { key = ["user:43", "ip:192.0.2.7"], quota = "unlimited", until = "2027-01-01" },
]

[[policy.limit]]
name = "monthly"
key = "user"
quota = "10000/month"
algorithm = "calendar"
shadow = true
"#;

#[test]
fn toml_and_json_go_around() {
    let config = Config::from_toml(FULL).unwrap();
    config.build(&extractors()).unwrap();
    let text = toml::to_string(&config).unwrap();
    assert_eq!(Config::from_toml(&text).unwrap(), config, "{text}");
    assert_eq!(toml::to_string(&Config::from_toml(&text).unwrap()).unwrap(), text);

    let json = serde_json::to_string(&config).unwrap();
    let back: Config = serde_json::from_str(&json).unwrap();
    assert_eq!(back, config, "{json}");
    back.build(&extractors()).unwrap();
}

/// A field that a new version adds has to be added above; `hops` stands for `trusted`.
#[test]
fn every_field_is_there() {
    let said = Config::from_toml(FULL).unwrap();
    let said = serde_json::to_string(&said).unwrap();
    for field in fields().iter().filter(|field| *field != "hops") {
        assert!(said.contains(&format!("\"{field}\":")), "{field}");
    }
}

/// The names of all fields, as they are told of a table that has another one.
fn fields() -> Vec<String> {
    let mut fields = Vec::new();
    for text in [
        "x = 1",
        "client_ip = { x = 1 }",
        "policy = [{ x = 1 }]",
        "policy = [{ allow = { x = 1 } }]",
        "policy = [{ limit = [{ x = 1 }] }]",
        "policy = [{ limit = [{ lockout = { x = 1 } }] }]",
        "policy = [{ limit = [{ tiers = { a = { x = 1 } } }] }]",
        "policy = [{ limit = [{ overrides = [{ x = 1 }] }] }]",
    ] {
        let told = Config::from_toml(text).unwrap_err().to_string();
        let (_, known) = told.split_once("expected ").unwrap();
        fields.extend(known.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    assert!(fields.len() > 35, "{fields:?}");
    fields
}

#[test]
fn what_is_not_said_is_not_written() {
    let text = "[[policy]]\nname = \"api\"\notherwise = true\n\n[[policy.limit]]\n\
                name = \"requests\"\nkey = \"ip\"\nquota = \"60/m\"\n";
    let config = Config::from_toml(text).unwrap();
    assert_eq!(toml::to_string(&config).unwrap(), text);
    let json = r#"{"policy":[{"name":"api","otherwise":true,"limit":[{"name":"requests","key":"ip","quota":"60/m"}]}]}"#;
    assert_eq!(serde_json::to_string(&config).unwrap(), json);
}

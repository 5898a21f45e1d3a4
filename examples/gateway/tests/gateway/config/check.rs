//! Files that can be used, and files that cannot.

use std::process::Command;

use super::support::{Folder, built_in, whole};
use crate::support::{gateway, run, run_with};

/// What is printed for a file, with its status.
fn check(folder: &Folder) -> (i32, String) {
    let output = folder.run(&["--check"]);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).replace(&folder.file(), "FILE");
    (output.status.code().expect("a status"), text)
}

#[test]
fn what_is_printed_can_be_used_as_it_is() {
    let folder = Folder::new(&built_in());
    assert_eq!(
        check(&folder),
        (0, "FILE: it can be used; 2 routes, 1 policy, 1 upstream\n".into())
    );
    let gateway = folder.start(&[]);
    let remaining = gateway.get("/").number("x-ratelimit-remaining");
    assert_eq!(remaining, 4);
    assert_eq!(gateway.get("/favicon.ico").header("x-ratelimit-remaining"), None);
}

#[test]
fn what_is_printed_shows_nothing_that_cannot_be_used() {
    let folder = Folder::new(&whole());
    let expected = "FILE: it can be used; 3 routes, 3 policies, 1 upstream, 1 issuer of tokens, 1 set of \
                    API keys\n";
    assert_eq!(check(&folder), (0, expected.into()));
}

#[test]
fn what_the_command_line_says_is_printed_as_a_file() {
    let args = [
        "--print-config",
        "--limit=9/m",
        "--upstream=http://127.0.0.1:1",
        "--max-body=1k",
        "--trust=10.0.0.1",
        "--on-failure=deny",
        "--log-requests",
    ];
    let output = run(&args);
    let folder = Folder::new(&String::from_utf8_lossy(&output.stdout));
    let explained = folder.run(&["--explain", "GET", "/a"]);
    assert_eq!(
        String::from_utf8_lossy(&explained.stdout),
        "route       all others\npolicy      gateway, on failure deny\n  limit     requests: 9/m by ip\n\
         upstream    main, http://127.0.0.1:1\n"
    );
    let text = String::from_utf8_lossy(&output.stdout);
    for part in
        ["trusted = [\"10.0.0.1\"]", "max_body = \"1k\"", "requests = true", "# Where clients"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// A text of the whole file, what stands there instead, and what is said of it.
const WRONG: [(&str, &str, &str); 47] = [
    (
        "listen = \"127.0.0.1:8080",
        "listen = \"here",
        "line 14, column 10: it must be an address and a port",
    ),
    ("checks = true", "checks = 1", "column 10: invalid type: integer `1`, expected a boolean"),
    ("[log]", "[lag]", "unknown field `lag`, expected one of `listen`"),
    (
        "format = \"pretty\"",
        "format = \"xml\"",
        "unknown variant `xml`, expected `pretty` or `json`",
    ),
    ("\"admin.token\"", "\"no.token\"", "admin: cannot read"),
    ("redis://127.0.0.1/", "http://127.0.0.1/", "redis.url: "),
    ("\"::1\"]", "\"::x\"]", "client_ip.trusted[1] = \"::x\""),
    ("\"demo:\"", "\"demo\"", "upstream `main`: the upstream \"demo\" must be a URL"),
    ("\"demo:\"", "\"http://up/base\"", "has a path"),
    ("connect_timeout = \"5s\"", "connect_timeout = \"5\"", "it must be a number and a unit of ms"),
    ("connect_timeout = \"5s\"", "connect_timeout = \"1ms\"", "a connect timeout of 1ms"),
    ("max_body = \"100m\"", "max_body = \"1t\"", "it must be a number of bytes"),
    ("\"https://id.example/.well", "\"http://id.example/.well", "jwt.users: "),
    ("jwks = ", "#jwks = ", "jwt.users: there must be one of `jwks`, `public_key_file`"),
    ("[\"RS256\"]", "[\"none\"]", "\"none\" is no algorithm for tokens"),
    ("jwks_stale = \"24h\"", "jwks_stale = \"1m\"", "a stale of 60s: it must be 600s to"),
    ("jwks_pause = \"30s\"", "jwks_pause = \"0s\"", "a pause of 0ns: it must be 1s to"),
    ("algorithms = [\"RS256\"]", "", "`algorithms` must say what the keys are for"),
    ("leeway = \"60s\"", "leeway = \"1h\"", "a leeway of 3600s is more than 600s"),
    ("audience = \"api\"", "audience = \"\"", "the audience \"\" is empty"),
    ("[[api_keys.partners.keys]]", "keys = []\n[nothing]", "unknown field `nothing`"),
    ("header = \"x-api-key\"", "header = \"x api\"", "\"x api\" names no header"),
    ("af1349b9", "secret", "what stands for the API key of \"acme\", 62 bytes long, is no digest"),
    ("\"/shops/{shop}/orders\"", "\"shops\"", "the route `shops` has no path that begins with `/`"),
    ("\"/shops/{shop}/orders\"", "\"/favicon.ico\", \"/favicon.ico\"", "cannot be told from"),
    ("\"/shops/{shop}/orders\"", "\"/a//b\"", "as such are refused: the path has an empty segment"),
    ("\"/shops/{shop}/orders\"", "\"/a/%2e\"", "as such are refused: "),
    ("\"/shops/{shop}/orders\"", "\"GET /healthz\"", "the gateway answers it by itself"),
    ("\"/shops/{shop}/orders\"", "\"TRACE /a\"", "this method is not served here"),
    ("match = [\"GET /favicon.ico\"]", "", "it must have a `match`, or `otherwise = true`"),
    (
        "match = [\"GET /favicon.ico\"]",
        "otherwise = true",
        "another route is for all other requests",
    ),
    (
        "upstream = \"main\"\ntimeout",
        "upstream = \"x\"\ntimeout",
        "there is no upstream \"x\"; there are",
    ),
    ("timeout = \"30s\"", "timeout = \"2h\"", "a timeout of 7200s: it must be 10ms to 3600s"),
    ("before_auth = \"guesses\"", "before_auth = \"x\"", "there is no policy \"x\"; there are: "),
    ("before_auth = \"guesses\"", "", "policy `guesses`: no route names it"),
    ("[\"users\", \"partners\"]", "[\"users\"]", "api_keys.partners: no route names it"),
    ("[\"users\", \"partners\"]", "[\"partners\"]", "jwt.users: no route names it"),
    ("[\"users\", \"partners\"]", "[]", "auth: it must name at least one"),
    (
        "header = \"x-api-key\"",
        "header = \"authorization\"",
        "two of them read `Authorization: Bearer`",
    ),
    ("auth = [\"users\", \"partners\"]", "", "without `auth`, all are anonymous"),
    (
        "auth = [\"users\", \"partners\"]         # any of these will do\nanonymous = true",
        "",
        "there is no `auth` that it could be before",
    ),
    ("[\"https://shop.example\"]", "[\"https://shop.example/\"]", "is no origin"),
    ("max_age = \"10m\"", "max_age = \"48h\"", "a `max_age` is at most 24h"),
    ("cors = \"any\"", "cors = \"all\"", "expected \"any\", or a table with `origins`"),
    ("quota = \"5/10s\"", "quota = \"5/x\"", "policy `gateway`, limit `requests`: quota = \"5/x\""),
    ("key = \"param:shop\"", "key = \"param:town\"", "has no `{town}`"),
    (
        "key = \"ip\"\nquota",
        "key = \"param:shop\"\nquota",
        "that no route takes, `otherwise`, have no",
    ),
];

#[test]
fn what_is_wrong_is_told_with_its_line_and_status_1() {
    let whole = whole();
    for (right, wrong, expected) in WRONG {
        assert_eq!(whole.matches(right).count(), 1, "{right} is to be there once");
        let text = whole.replace(right, wrong);
        let folder = Folder::new(&text);
        let (status, said) = check(&folder);
        assert_eq!(status, 1, "{wrong}: {said}");
        assert!(said.contains(expected), "{wrong}: {said}");
        assert!(said.starts_with("error: FILE, line "), "{wrong}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// Other files that a file names.
#[test]
fn what_is_wrong_with_another_file_is_told() {
    let folder =
        Folder::new(&whole().replace("https://id.example/.well-known/jwks.json", "keys.json"));
    for (keys, expected) in [
        (None, "keys.json: No such file"),
        (Some("{}"), "keys.json: "),
        (Some("no keys"), "keys.json: "),
    ] {
        if let Some(keys) = keys {
            std::fs::write(folder.path("keys.json"), keys).expect("it can be written");
        }
        let (status, said) = check(&folder);
        assert_eq!(status, 1, "{said}");
        assert!(said.contains("FILE, line ") && said.contains("jwt.users: "), "{said}");
        assert!(said.contains(expected), "{said}");
    }
    std::fs::remove_file(folder.path("admin.token")).expect("it was there");
    let (_, said) = check(&folder);
    assert!(said.contains("admin: cannot read"), "{said}");
}

#[test]
fn where_clients_come_from_is_checked_without_policies_as_well() {
    let text =
        "upstream.main.url = \"demo:\"\nroute = [{ otherwise = true, upstream = \"main\" }]\n";
    assert_eq!(check(&Folder::new(text)).0, 0);
    let folder = Folder::new(&format!("{text}[client_ip]\ntrusted = [\"x\"]\n"));
    let (status, said) = check(&folder);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("FILE, line 4, ") && said.contains("client_ip.trusted"), "{said}");
}

/// Neither a pipe nor what never ends is waited for.
#[test]
fn only_files_are_read() {
    let folder = Folder::new("");
    let pipe = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
    for path in [pipe.as_path(), std::path::Path::new("/dev/zero"), folder.path("").as_path()] {
        let output = run(&["--config", &path.display().to_string(), "--check"]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("it is no file"), "{message}");
    }
}

/// What only shows in the end is also told before a port is taken.
#[test]
fn a_wrong_file_does_not_start() {
    let folder = Folder::new(&built_in().replace("5/10s", "5"));
    let output = folder.run(&["--listen", "127.0.0.1:0"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(", line ") && message.contains("quota = \"5\""), "{message}");

    let missing = run(&["--config", "/nowhere/gateway.toml", "--check"]);
    let message = String::from_utf8_lossy(&missing.stderr);
    assert_eq!(missing.status.code(), Some(1), "{message}");
    assert!(message.contains("/nowhere/gateway.toml: it cannot be read"), "{message}");
}

#[test]
fn arguments_that_a_file_answers_are_refused_beside_it() {
    let folder = Folder::new(&built_in());
    for arg in ["--limit=1/s", "--trust=::1", "--on-failure=deny", "--upstream=http://up"] {
        let output = folder.run(&[arg]);
        assert_eq!(output.status.code(), Some(2), "{arg}: {output:?}");
    }
}

fn with_environment(folder: &Folder, variables: &[(&str, &str)]) -> Command {
    let mut command = gateway(&["--config", &folder.file(), "--check"]);
    command.envs(variables.iter().copied());
    command
}

#[test]
fn secrets_of_the_environment_go_before_the_file() {
    let text = whole().replace("jwks = ", "#jwks = ").replace("[\"RS256\"]", "[\"HS256\"]");
    let folder = Folder::new(&text);
    let secret = "a secret of thirty-two bytes, or more";
    let good = run_with(with_environment(&folder, &[("TOLLGATE_JWT_USERS_SECRET", secret)]));
    assert!(good.status.success(), "{good:?}");
    for (variable, value, expected) in [
        ("TOLLGATE_JWT_USERS_SECRET", "short", "TOLLGATE_JWT_USERS_SECRET: "),
        ("TOLLGATE_REDIS_URL", "ftp://s3cret@host/", "redis.url"),
        ("TOLLGATE_ADMIN_TOKEN", "short", "the token must have at least 16 characters"),
    ] {
        let mut command = with_environment(&folder, &[("TOLLGATE_JWT_USERS_SECRET", secret)]);
        command.args(["--admin", "127.0.0.1:0"]).env(variable, value);
        let output = run_with(command);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{variable}: {message}");
        assert!(message.contains(expected) && !message.contains("s3cret"), "{variable}: {message}");
    }
}

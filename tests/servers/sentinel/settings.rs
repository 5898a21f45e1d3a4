//! How sentinels are named, and what is wrong with how they are.

use tollgate::{RedisStore, RedisStoreBuilder, StoreErrorKind};

const FORM: &str =
    "`redis+sentinel://[user][:password@]host[:port][,host[:port]…]/name[/database]`";

#[test]
fn urls_and_lists_of_sentinels_are_taken() {
    let right = [
        RedisStore::builder("redis+sentinel://127.0.0.1/mymaster"),
        RedisStore::builder("REDIS+SENTINEL://s1:26379,s2,[::1],[::1]:5000/my-master.1_2/15"),
        RedisStore::builder("valkey+sentinel://user:p%40%2F%2C@s1,s2/mymaster/"),
        RedisStore::sentinel(["redis://s1:26379", "redis://s2"], "mymaster"),
        RedisStore::sentinel(["redis://:word@s1/2", "redis://s2"], "mymaster"),
        RedisStore::sentinel(["redis://s1"], "mymaster").sentinel_user("u").sentinel_password("p"),
    ];
    for (at, builder) in right.into_iter().enumerate() {
        builder.connect_lazy().unwrap_or_else(|error| panic!("{at}: {error}"));
    }
    #[cfg(feature = "tls")]
    for scheme in ["rediss+sentinel", "valkeys+sentinel"] {
        let url = format!("{scheme}://:word@s1,s2/mymaster");
        RedisStore::builder(&url).connect_lazy().unwrap_or_else(|error| panic!("{url}: {error}"));
    }
}

#[test]
fn wrong_settings_are_errors_that_say_what_is_expected_and_show_no_password() {
    let url = |url: &str| RedisStore::builder(url);
    let list = |urls: &[&str]| RedisStore::sentinel(urls, "mymaster");
    let none: [&str; 0] = [];
    let cases: [(RedisStoreBuilder, &[&str]); 16] = [
        (url("redis+sentinel://"), &["no name of a primary", FORM]),
        (url("redis+sentinel://:hunter2@s1,s2"), &["no name of a primary", FORM]),
        (url("redis+sentinel://:hunter2@s1,,s2/mymaster"), &["no host", FORM]),
        (url("redis+sentinel://:hunter2@/mymaster"), &["no host", FORM]),
        (url("redis+sentinel://:a/hunter2@s1/mymaster"), &["name of the primary", "letters"]),
        (url("redis+sentinel://s1/mymaster/words"), &["database that is not a number"]),
        (url("redis+sentinel://s1/mymaster?db=1"), &["name of the primary", "letters"]),
        (url("redis+sentinel://s1:70000/mymaster"), &["port"]),
        (url("redis+sentinel://:hunter%zz@s1/mymaster"), &["hexadecimal"]),
        (RedisStore::sentinel(none, "mymaster"), &["no sentinel"]),
        (RedisStore::sentinel(["redis://s1"], ""), &["name of the primary", "letters"]),
        (list(&["unix:///run/sentinel.sock"]), &["socket"]),
        (list(&["redis://:hunter2@s1", "redis://:hunter22@s2"]), &["differ in the user"]),
        (list(&["redis://s1"]).sentinel_user("u"), &["no password"]),
        (list(&["redis://s1"]).connections(0), &["0 connections", "1 to 64"]),
        (url("redis://s1").sentinel_password("hunter2"), &["sentinels", "none"]),
    ];
    for (at, (builder, parts)) in cases.into_iter().enumerate() {
        assert!(!format!("{builder:?}").contains("hunter2"), "{builder:?}");
        let error = builder.connect_lazy().err().unwrap_or_else(|| panic!("{at} {parts:?}"));
        println!("{error}");
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        for part in parts {
            assert!(error.to_string().contains(part), "`{part}` is not in `{error}`");
        }
    }
}

//! The scripts.

use super::{Source, sources};

fn lua() -> Vec<Source> {
    sources(&["lua"], "lua")
}

/// A line of code without its strings, whose contents are patterns and messages.
fn bare(line: &str) -> String {
    line.split('\'').step_by(2).collect()
}

#[test]
fn each_file_says_what_it_is_given_and_what_it_returns() {
    for file in lua() {
        let header: Vec<&str> =
            file.text.lines().take_while(|line| line.starts_with("--")).collect();
        let at = |word: &str| {
            let starts = format!("-- {word} ");
            let found = header.iter().position(|line| line.starts_with(&starts));
            found.unwrap_or_else(|| panic!("{}: no `{word}` in the header", file.path))
        };
        assert!(0 < at("KEYS") && at("KEYS") < at("ARGV") && at("ARGV") < at("returns"));
    }
}

#[test]
fn no_number_loses_digits_on_its_way_into_a_string() {
    for file in lua() {
        for (at, line) in file.code() {
            // Both keep 14 digits: a time in microseconds has 16.
            let line = bare(line);
            for word in ["tostring", "..", "concat", "cjson", "cmsgpack"] {
                assert!(!line.contains(word), "{}:{at}: {word}", file.path);
            }
        }
    }
}

#[test]
fn numbers_are_written_whole() {
    for file in lua() {
        for (at, line) in file.code().filter(|(_, line)| line.contains("format(")) {
            let whole = line.contains(".0f") || line.contains("WHOLE");
            // What `WHOLE` is, and a whole number that is put together with its picoseconds.
            let named = line.starts_with("local WHOLE = ") || line.contains("%s.%06d");
            let line = line.replace("%.0f", "").replace("%016.0f", "").replace("%06d", "");
            let line = if named { line.replace("%d", "").replace("%s", "") } else { line };
            let others = line.split("format(").skip(1).any(|rest| rest.contains('%'));
            assert!((whole || named) && !others, "{}:{at}: {line}", file.path);
        }
    }
}

#[test]
fn one_file_knows_the_time_and_one_writes() {
    for file in lua() {
        for (at, line) in file.code() {
            let place = format!("{}:{at}: {line}", file.path);
            let called = ["call(", "get("].iter().flat_map(|call| line.split(call).skip(1));
            for rest in called.filter(|rest| rest.starts_with('\'')) {
                let command = rest.split('\'').nth(1).unwrap_or_default();
                match command {
                    "GET" => {}
                    "TIME" => assert_eq!(file.path, "lua/lib/clock.lua", "{place}"),
                    "SET" | "INCRBY" | "EXPIREAT" => {
                        assert_eq!(file.path, "lua/lib/put.lua", "{place}");
                    }
                    // A sorted set has no command that sets members together with an expiry.
                    "ZREVRANGE" | "ZCOUNT" | "ZCARD" | "ZRANGE" | "ZRANGEBYSCORE" | "ZADD"
                    | "ZREMRANGEBYSCORE" | "ZREMRANGEBYRANK" => {
                        assert_eq!(file.path, "lua/algorithm/sliding_log.lua", "{place}");
                    }
                    other => panic!("{place}: {other} is new here"),
                }
            }
            // No command that is not a literal, so that none hides from this.
            let dynamic = ["call(", "redis.pcall("]
                .iter()
                .any(|call| line.split(call).skip(1).any(|rest| !rest.starts_with('\'')));
            assert!(!dynamic, "{place}");
        }
    }
}

#[test]
fn value_and_expiry_are_set_by_one_command() {
    let put = lua().into_iter().find(|file| file.path == "lua/lib/put.lua").unwrap();
    let writes: Vec<_> = put.code().filter(|(_, line)| line.contains("call('")).collect();
    let [(_, write), (_, expire), (_, add), (_, keep)] = writes.as_slice() else {
        panic!("not four: {writes:?}")
    };
    assert!(write.contains("'SET'") && write.contains("'EXAT'"), "{write}");
    assert!(expire.contains("'EXPIREAT'"), "{expire}");
    // Those leave an expiry that is there.
    assert!(add.contains("'INCRBY'"), "{add}");
    assert!(keep.contains("'SET'") && keep.contains("'KEEPTTL'"), "{keep}");
    // What cannot be is followed by its expiry in the same function, which always runs to its end.
    for file in lua().iter().filter(|file| file.text.contains("'ZADD'")) {
        let (_, write) = file.text.split_once(".write(").expect("a function that writes");
        let (body, _) = write.split_once("\n  end\n").expect("an end");
        let last = body.lines().last().unwrap_or_default();
        assert!(last.starts_with("    expire(key, "), "{}: {last}", file.path);
        assert!(!body.contains("return"), "{}", file.path);
    }
}

#[test]
fn every_key_is_declared() {
    // A key may come from KEYS only, which a cluster and Dragonfly check: none is put together.
    for file in lua() {
        for (at, line) in file.code().filter(|(_, line)| line.contains("redis.")) {
            let literal = ["'GET', '", "'SET', '", "'GET', ARGV", "'SET', ARGV"];
            let made = literal.iter().any(|start| line.contains(start));
            assert!(!made, "{}:{at}: {line}", file.path);
        }
    }
}

#[test]
fn nothing_is_global() {
    for file in lua() {
        for (at, line) in file.code() {
            // A field of a table that is local is not.
            let table = line.strip_prefix("function ").and_then(|name| name.split_once('.'));
            let of_local = table
                .is_some_and(|(table, _)| file.text.contains(&format!("\nlocal {table} = {{}}\n")));
            let declares = line.starts_with("function ") && !of_local;
            let assigns = line.split_once(" = ").is_some_and(|(name, _)| {
                !line.starts_with(' ')
                    && name.chars().all(|char| char.is_alphanumeric() || char == '_')
            });
            assert!(!declares && !assigns, "{}:{at}: {line}", file.path);
        }
    }
}

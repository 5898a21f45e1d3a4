use std::{
    io::Write as _,
    process::{Command, Stdio},
};

const COLUMNS: [&str; 6] =
    ["token bucket", "sliding log", "sliding counter", "fixed window", "calendar", "mixed"];

/// The table of a record, and whether all is well with it.
fn table(record: &str, some: &str) -> (String, bool) {
    let (out, well) = awk(&["-v", &format!("some={some}"), "-f", "tests/tally/table.awk"], record);
    print!("{out}");
    (out, well)
}

fn awk(args: &[&str], input: &str) -> (String, bool) {
    let mut awk = Command::new("awk")
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`awk` is installed");
    let mut stdin = awk.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("awk reads");
    drop(stdin);
    let output = awk.wait_with_output().expect("awk ends");
    (String::from_utf8(output.stdout).expect("text"), output.status.success())
}

/// A record of a run in which one store did all there is to do.
fn full() -> String {
    let checked = COLUMNS.map(|column| format!("checked\tmemory\t{column}\t1234567\n"));
    format!("row\tmemory\n{}tests\tmemory\t7\t0\n", checked.concat())
}

fn cells(table: &str, store: &str) -> String {
    let row = table.lines().find(|line| line.starts_with(store)).expect("a row");
    row.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_table_in_which_each_store_did_all_is_well() {
    let (table, well) = table(&full(), "");
    assert!(well);
    assert_eq!(cells(&table, "memory"), format!("memory{} 7 passed", " 1,234,567 ok".repeat(6)));
}

#[test]
fn counts_of_several_tests_add_up() {
    let more = "checked\tmemory\tcalendar\t3\n".repeat(2);
    let (table, _) = table(&(full() + &more), "");
    assert!(cells(&table, "memory").contains(" 1,234,573 ok "));
}

#[test]
fn a_cell_of_nothing_is_a_failure_unless_only_some_tests_were_asked_for() {
    for column in COLUMNS {
        let line = format!("checked\tmemory\t{column}\t1234567\n");
        let record = full().replace(&line, "");
        let (out, well) = table(&record, "");
        assert!(!well && cells(&out, "memory").contains("NOTHING"), "{column}");
        let (out, well) = table(&record, "yes");
        assert!(well && cells(&out, "memory").contains(" - "), "{column}");
        let none = format!("{record}checked\tmemory\t{column}\t0\n");
        assert!(!table(&none, "").1, "{column}");
    }
}

#[test]
fn a_failure_is_in_the_cell_where_it_was() {
    let (table, well) = table(&(full() + "failed\tmemory\tmixed\n"), "yes");
    assert!(!well);
    assert!(cells(&table, "memory").ends_with(" 1,234,567 ok FAILED 7 passed"));
}

#[test]
fn a_failed_test_and_a_store_that_was_not_tested_are_failures() {
    let (out, well) = table(&(full() + "tests\tmemory\t1\t2\n"), "");
    assert!(!well && cells(&out, "memory").ends_with(" 2 FAILED, 8 passed"));
    let (out, well) = table(&(full() + "row\tRedis 1.2.3\n"), "yes");
    assert!(!well && out.contains("DID NOT RUN"));
}

#[test]
fn what_was_skipped_is_told_and_did_not_pass() {
    let (table, well) = table(&(full() + "skipped\tmemory\tmod::test\tno reason\n"), "");
    assert!(well);
    assert!(cells(&table, "memory").ends_with(" 6 passed, 1 skipped"));
    assert!(table.ends_with("skipped on memory: mod::test: no reason\n"));
}

#[test]
fn outcomes_are_read_from_what_cargo_prints() {
    let log = "
     Running tests/hermetic/main.rs (target/debug/deps/hermetic-6d)
test a ... ok
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
     Running tests/servers/main.rs (target/debug/deps/servers-a0)
test result: FAILED. 4 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s
     Running tests/gateway/main.rs (target/debug/deps/gateway-1f)
test b ... ok
   Doc-tests tollgate
test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
";
    let (out, _) = awk(&["-v", "server=Redis 1.2.3", "-f", "tests/tally/outcome.awk"], log);
    let mut lines: Vec<_> = out.lines().collect();
    lines.sort_unstable();
    // The third program ended without a result.
    assert_eq!(lines, ["tests\tRedis 1.2.3\t4\t3", "tests\tmemory\t8\t0"]);
}

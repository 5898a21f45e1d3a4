//! The packets that reach a server's port, in a network namespace of this process's own.

use std::{
    env,
    io::Write as _,
    process::{Command, Stdio},
};

/// Counts attempts to connect, and drops everything on demand.
#[derive(Debug)]
pub(crate) struct Filter {
    port: u16,
}

impl Filter {
    /// None, if there is no such namespace. `tests/chaos/run` says that there is one.
    pub(crate) fn new(port: u16) -> Option<Self> {
        env::var_os("TOLLGATE_CHAOS_NFT")?;
        let filter = Self { port };
        filter.set("");
        Some(filter)
    }

    pub(crate) fn drop_all(&self, on: bool) {
        let rule = format!("tcp dport {} drop", self.port);
        self.set(if on { &rule } else { "" });
    }

    /// How many SYN packets came so far.
    pub(crate) fn attempts(&self) -> u64 {
        let listed = nft(&["list", "counter", "inet", "chaos", "syns"], "");
        let count = listed.split("packets ").nth(1).and_then(|rest| rest.split(' ').next());
        count.and_then(|count| count.parse().ok()).expect("a counter")
    }

    /// The counter goes on.
    fn set(&self, rule: &str) {
        let port = self.port;
        let rules = format!(
            "table inet chaos {{ }}\n\
             flush table inet chaos\n\
             table inet chaos {{\n\
               counter syns {{ }}\n\
               chain in {{\n\
                 type filter hook input priority 0;\n\
                 tcp dport {port} tcp flags & (syn | ack) == syn counter name syns\n\
                 {rule}\n\
               }}\n\
             }}\n"
        );
        nft(&["-f", "-"], &rules);
    }
}

fn nft(args: &[&str], input: &str) -> String {
    let mut nft = Command::new("nft")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`nft` is installed");
    nft.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("nft reads");
    let output = nft.wait_with_output().expect("nft ends");
    assert!(output.status.success(), "nft {args:?}:\n{input}");
    String::from_utf8(output.stdout).expect("text")
}

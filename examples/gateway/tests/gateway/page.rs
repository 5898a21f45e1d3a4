//! The live page, in a browser.

#![cfg(test)]

use std::{
    env, fs,
    io::{self, Read as _, Write as _},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    admin::{metric, state},
    support::{Gateway, eventually},
};

/// What of Chromium there is: `TOLLGATE_CHROMIUM`, or one of its names.
fn chromium() -> Option<String> {
    let names = ["chromium", "chromium-browser", "google-chrome"].map(str::to_owned);
    let mut names = env::var("TOLLGATE_CHROMIUM").into_iter().chain(names);
    names.find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success())
    })
}

/// What the page has become, once it is loaded, and what the browser had to say about it.
fn dump(chromium: &str, url: &str, profile: &Path) -> (String, String) {
    let log = profile.join("log");
    fs::create_dir_all(profile).expect("a temporary folder");
    let mut browser = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-proxy-server", "--dump-dom"])
        .arg("--enable-logging=stderr")
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(url)
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&log).expect("a temporary file"))
        .spawn()
        .expect("Chromium can be run");
    let pid = Pid::from_child(&browser);
    let (done, ends) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if ends.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    let mut page = String::new();
    browser.stdout.take().expect("a pipe").read_to_string(&mut page).expect("text");
    drop(done);
    watchdog.join().expect("it does not panic");
    browser.wait().expect("it can be waited for");
    let said = fs::read(log).expect("a log");
    (page, String::from_utf8_lossy(&said).into_owned())
}

/// The number that the page shows for an outcome.
fn shown(page: &str, outcome: &str) -> u64 {
    let mark = format!("data-policy=\"gateway\" data-outcome=\"{outcome}\">");
    let (_, rest) = page.split_once(&mark).unwrap_or_else(|| panic!("no {outcome} in:\n{page}"));
    let number = rest.split('<').next().unwrap_or_default();
    number.parse().unwrap_or_else(|_| panic!("{number:?} is no number"))
}

#[test]
fn the_page_shows_what_the_metrics_tell() {
    let Some(chromium) = chromium() else {
        // Past what keeps the output of tests that pass to itself.
        let text = "SKIPPED: the live page was not tested, for want of Chromium (Debian, Ubuntu: \
                    apt-get install chromium; or TOLLGATE_CHROMIUM names one)";
        let _ = writeln!(io::stderr(), "{text}");
        return;
    };
    let gateway = Gateway::start(&["--admin", "127.0.0.1:0", "--limit", "4/h"]);
    let admin = gateway.admin.expect("an admin listener");
    for request in 0..13 {
        assert_eq!(gateway.get("/").status, if request < 4 { 200 } else { 429 });
    }
    eventually(|| state(admin)["policies"][0]["outcomes"]["denied"] == 9);

    let profile = env::temp_dir().join(format!("tollgate-chromium-{}", std::process::id()));
    let (page, log) = dump(&chromium, &format!("http://{admin}/"), &profile);
    let _ = fs::remove_dir_all(&profile);
    for (outcome, sent) in [("allowed", 4), ("denied", 9), ("error_allowed", 0)] {
        assert_eq!(shown(&page, outcome), sent, "{outcome}");
        assert_eq!(metric(admin, outcome), sent, "{outcome}");
    }
    assert!(!log.contains("CONSOLE"), "{log}");
    // One for the policy, and one for the time.
    assert_eq!(page.matches("<canvas").count(), 2, "{page}");
    assert!(page.contains("ip:127.0.*.*") && !page.contains("127.0.0.1:0"), "{page}");
    assert!(page.contains("<option value=\"requests\">"), "{page}");
}

/// The script sends as many requests as it says, to this machine alone.
#[test]
fn the_script_sends_bursts() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/try.sh");
    let run = |url: &str, rounds: &str| {
        let mut command = Command::new("bash");
        command.arg(script).arg(url).env("TRY_ROUNDS", rounds);
        let output = command.output().expect("bash can be run");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let gateway = Gateway::start(&["--admin", "127.0.0.1:0", "--limit", "5/h"]);
    let admin = gateway.admin.expect("an admin listener");
    let (status, text) = run(&format!("http://{}/", gateway.address), "2");
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains(&format!("live page  http://{admin}/")), "{text}");
    assert!(text.contains("burst  1:  3 requests:  3 × 200"), "{text}");
    assert!(text.contains("burst  2:  6 requests:  1 × 200  5 × 429"), "{text}");
    assert_eq!((metric(admin, "allowed"), metric(admin, "denied")), (5, 5));

    for url in [
        "http://192.0.2.1/",
        "https://localhost/",
        "http://localhost.evil.example/",
        "http://127.0.0.1@evil.example/",
        "http://127.0.0.1:80@evil.example/",
        "http://127.0.0.1/[1-1000]",
    ] {
        let (status, text) = run(url, "1");
        assert_eq!(status, Some(2), "{url}: {text}");
    }
    for rounds in ["0", "61", "x", "1e9"] {
        assert_eq!(run(&format!("http://{}/", gateway.address), rounds).0, Some(2), "{rounds}");
    }
}

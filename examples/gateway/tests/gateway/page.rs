//! The live page, in a browser.

#![cfg(test)]

use std::{env, fs, path::Path, process::Command};

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

/// What the page has become, once it is loaded.
fn dump(chromium: &str, url: &str, profile: &Path) -> String {
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-proxy-server", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(url)
        .output()
        .expect("Chromium can be run");
    String::from_utf8_lossy(&output.stdout).into_owned()
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
        eprintln!("SKIPPED: there is no Chromium (Debian: apt-get install chromium)");
        return;
    };
    let gateway = Gateway::start(&["--admin", "127.0.0.1:0", "--limit", "4/h"]);
    let admin = gateway.admin.expect("an admin listener");
    for request in 0..13 {
        assert_eq!(gateway.get("/").status, if request < 4 { 200 } else { 429 });
    }
    eventually(|| state(admin)["policies"][0]["outcomes"]["denied"] == 9);

    let profile = env::temp_dir().join(format!("tollgate-chromium-{}", std::process::id()));
    let page = dump(&chromium, &format!("http://{admin}/"), &profile);
    let _ = fs::remove_dir_all(&profile);
    for (outcome, sent) in [("allowed", 4), ("denied", 9), ("error_allowed", 0)] {
        assert_eq!(shown(&page, outcome), sent, "{outcome}");
        assert_eq!(metric(admin, outcome), sent, "{outcome}");
    }
    // One for the policy, and one for the time; what scripts may not do, the page does without.
    assert_eq!(page.matches("<canvas").count(), 2, "{page}");
    assert!(page.contains("ip:127.0.*.*") && !page.contains("127.0.0.1:0"), "{page}");
    assert!(page.contains("<option value=\"requests\">"), "{page}");
}

//! What a request would meet.

use super::support::{Folder, built_in, whole};
use crate::support::run;

fn explain(folder: &Folder, method: &str, path: &str) -> String {
    let output = folder.run(&["--explain", method, path]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn all_that_stands_on_a_route_is_told_in_order() {
    let folder = Folder::new(&whole());
    assert_eq!(
        explain(&folder, "PUT", "/shops/acme/orders?a=b"),
        "\
route       /shops/{shop}/orders
cors        scripts of https://shop.example
timeout     30s
policy      guesses
  limit     attempts: 300/m by ip
auth        users or partners, or nothing
policy      orders, on failure local:0.25
  limit     caller: 20/s by claim:sub or known_key or ip, 40 at once; internal: unlimited; pro: 200/s
  limit     shop: 500/s by param:shop
upstream    main, demo:
"
    );
    let together = Folder::new(&whole().replace("one_slot = false", "one_slot = true"));
    let orders = explain(&together, "PUT", "/shops/acme/orders");
    assert!(
        orders.contains("policy      orders, on failure local:0.25, in one slot\n"),
        "{orders}"
    );
    let stock = explain(&folder, "POST", "/shops/acme/stock/a/b");
    assert!(stock.starts_with("route       GET,POST /shops/{shop}/stock/{*path}\n"), "{stock}");
    // Another method is another route.
    let other = explain(&folder, "PUT", "/shops/acme/stock/a/b");
    assert!(other.starts_with("route       all others\n"), "{other}");
    assert_eq!(
        explain(&folder, "GET", "/favicon.ico"),
        "route       GET /favicon.ico\npolicy      none: it is not limited\nupstream    main, demo:\n"
    );
}

#[test]
fn what_takes_no_route_is_told_too() {
    let folder = Folder::new(&built_in().replace("otherwise = true", "match = [\"/a\"]"));
    for (method, path, expected) in [
        ("GET", "/b", "answered    404: no route takes it, and there is no `otherwise`\n"),
        ("GET", "/healthz", "answered    by the gateway itself, without limits\n"),
        ("GET", "/a//b", "refused     400: the path has an empty segment\n"),
        ("GET", "/%61", "refused     400: the path encodes a character that needs no encoding\n"),
        ("TRACE", "/a", "refused     501: this method is not served here\n"),
    ] {
        assert_eq!(explain(&folder, method, path), expected, "{method} {path}");
    }
    for (method, path) in [("G T", "/"), ("GET", "a b")] {
        let output = folder.run(&["--explain", method, path]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
    assert_eq!(run(&["--explain", "GET"]).status.code(), Some(2));
}

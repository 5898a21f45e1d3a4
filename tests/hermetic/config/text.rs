//! Texts that have more in them, and routes that they leave out.

use http::Request;
use tollgate::{
    RequestHead,
    config::{self, Config, Extractors},
};

#[test]
fn routes_without_limits_are_named() {
    let text = "exempt = ['GET /healthz']\npolicy = [{ name = 'rest', otherwise = true, \
                limit = [{ name = 'requests', key = 'global', quota = '1/h' }] }]";
    let set = config::from_toml(text, &Extractors::new()).unwrap();
    for (path, is_limited) in [("/healthz", false), ("/", true), ("/healthz/", true)] {
        let request = Request::get(path).body(()).unwrap();
        assert_eq!(set.find(RequestHead::new(&request)).is_some(), is_limited, "{path}");
    }
    let error = config::from_toml(&text.replace("GET /h", "h"), &Extractors::new()).unwrap_err();
    assert_eq!((error.line(), error.column()), (Some(1), Some(11)));
    assert!(error.to_string().contains("has no path that begins with `/`"), "{error}");
}

/// A program may have its own tables around those of the limits.
#[test]
fn what_is_wrong_is_found_in_a_larger_text() {
    let text = "listen = ':80'\n\n[[policy]]\nname = 'a'\notherwise = true\n\
                limit = [{ name = 'b', key = 'ip', quota = '1/x' }]\n";
    let mut config: Config = Config::from_toml(text.trim_start_matches("listen = ':80'")).unwrap();
    let error = config.build(&Extractors::new()).unwrap_err();
    assert_eq!(error.line(), None);
    let located = error.in_text(text);
    assert_eq!((located.line(), located.column()), (Some(6), Some(44)));
    assert!(
        located.to_string().starts_with("line 6, column 44, policy `a`, limit `b`: quota = '1/x'")
    );

    // What does not stand in the text is said to be where it would.
    config.policies[0].limits[0].quota = "1/s".into();
    config.policies[0].routes = vec!["/a{".into()];
    let located = config.build(&Extractors::new()).unwrap_err().in_text(text);
    assert_eq!(located.line(), Some(3), "{located}");
}

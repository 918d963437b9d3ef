//! Tables of paths and locations.

use super::*;

fn url(path: &str) -> Url {
    Url::new(false, "10.0.0.1", 80, path).expect(path)
}

#[test]
fn a_path_becomes_the_target_that_the_kubelet_would_ask_for() {
    for (path, target) in [
        ("/", "/"),
        ("", "/"),
        ("/healthz", "/healthz"),
        ("healthz", "/healthz"),
        ("/a?b=c&d", "/a?b=c&d"),
        ("?b", "/?b"),
        ("/a#fragment", "/a"),
        ("/a/../b/./c", "/a/../b/./c"),
        ("/50%?x", "/50%25%3Fx"),
        ("//other/x?y", "/x?y"),
        ("https://other:1/x", "/x"),
        ("///x", "///x"),
        ("a:b/c", "/a:b/c"),
        ("/a b", "/a%20b"),
    ] {
        assert_eq!(url(path).target, target, "{path}");
    }
}

#[test]
fn hosts_are_written_as_urls_write_them() {
    for (host, https, text) in [
        ("10.0.0.1", false, "http://10.0.0.1:8080/x"),
        ("fd00::1", true, "https://[fd00::1]:8080/x"),
        ("web.local", false, "http://web.local:8080/x"),
    ] {
        let url = Url::new(https, host, 8080, "/x").expect(host);
        assert_eq!(url.to_string(), text);
        assert_eq!((url.host.as_str(), url.is_https()), (host, https));
    }
    for host in ["a b", "a/b", "user@host", "[::1]"] {
        assert!(Url::new(false, host, 80, "/").is_err(), "{host}");
    }
}

#[test]
fn locations_are_resolved_as_the_standard_says() {
    let base = url("/a/b/c?q=1");
    for (location, expected) in [
        ("https://other/x", "https://other/x"),
        ("HTTP://other:81", "http://other:81/"),
        ("//other:1/x", "http://other:1/x"),
        ("http://user:password@other/", "http://other/"),
        ("/x/../y", "http://10.0.0.1:80/y"),
        ("d", "http://10.0.0.1:80/a/b/d"),
        ("./d?e=f", "http://10.0.0.1:80/a/b/d?e=f"),
        ("../d", "http://10.0.0.1:80/a/d"),
        ("../../../d/", "http://10.0.0.1:80/d/"),
        ("..", "http://10.0.0.1:80/a/"),
        ("?r=2", "http://10.0.0.1:80/a/b/c?r=2"),
        ("d#fragment", "http://10.0.0.1:80/a/b/d"),
        ("http://[fd00::1]:8/x", "http://[fd00::1]:8/x"),
    ] {
        let joined = base.join(location).map(|url| url.to_string());
        assert_eq!(joined.as_deref(), Ok(expected), "{location}");
    }
    for location in [
        "/50%",
        "d:/\n",
        ":x",
        "http://a:b/",
        "http://[::1/",
        "http://a b/",
    ] {
        assert!(base.join(location).is_err(), "{location}");
    }
}

#[test]
fn hosts_and_ports_of_locations_are_parsed() {
    let base = url("/");
    for (location, host, port) in [
        ("https://10.0.0.1/", "10.0.0.1", 443),
        ("http://10.0.0.1/", "10.0.0.1", 80),
        ("http://10.0.0.1:8080/", "10.0.0.1", 8080),
        ("http://[::1]:8080/", "::1", 8080),
        ("http://[::1]/", "::1", 80),
        ("mailto:someone", "", 0),
        ("/x", "10.0.0.1", 80),
    ] {
        let joined = base.join(location).expect(location);
        assert_eq!(
            (joined.host.as_str(), joined.port),
            (host, port),
            "{location}"
        );
    }
}

//! Resolves a `Location` against the requested URL: RFC 3986, section 5.2.
//!
//! Only the text is resolved. Whether the result may be requested, and with which credentials, is
//! decided from its parsed origin, never from this text.

use rubelet_base::url_path::without_dots;

/// The five components of a URI reference, RFC 3986, appendix B. The fragment is dropped: it is
/// never sent.
struct UriReference<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> UriReference<'a> {
    fn split(text: &'a str) -> Self {
        let text = text.split_once('#').map_or(text, |(before, _)| before);
        let (text, query) = match text.split_once('?') {
            Some((before, query)) => (before, Some(query)),
            None => (text, None),
        };
        // A colon after the first slash belongs to the path.
        let (scheme, text) = match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, text),
        };
        let (authority, path) = match text.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(authority), path)
            }
            None => (None, text),
        };
        Self {
            scheme,
            authority,
            path,
            query,
        }
    }
}

/// The target of `location` in a response from `base`, an absolute URL. An invalid reference gives an
/// invalid URL.
pub(super) fn resolve(base: &str, location: &str) -> String {
    let base = UriReference::split(base);
    let to = UriReference::split(location);
    let base_scheme = base.scheme.unwrap_or_default();
    if let Some(scheme) = to.scheme {
        return join(scheme, to.authority, &without_dots(to.path), to.query);
    }
    if to.authority.is_some() {
        return join(base_scheme, to.authority, &without_dots(to.path), to.query);
    }
    if to.path.is_empty() {
        let query = to.query.or(base.query);
        return join(base_scheme, base.authority, base.path, query);
    }
    let path = if to.path.starts_with('/') {
        without_dots(to.path)
    } else {
        let directory = base.path.rfind('/').map_or("/", |at| &base.path[..=at]);
        without_dots(&format!("{directory}{}", to.path))
    };
    join(base_scheme, base.authority, &path, to.query)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn join(scheme: &str, authority: Option<&str>, path: &str, query: Option<&str>) -> String {
    let mut url = format!("{scheme}:");
    if let Some(authority) = authority {
        url.push_str("//");
        url.push_str(authority);
    }
    url.push_str(path);
    if let Some(query) = query {
        url.push('?');
        url.push_str(query);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::{super::origin, *};

    const BASE: &str = "https://r.test:5000/v2/a/blobs/x?y=/z";

    #[test]
    fn references_resolve_as_rfc_3986_says() {
        for (location, url) in [
            ("https://s.test/b", "https://s.test/b"),
            ("https://s.test", "https://s.test"),
            ("//s.test/b", "https://s.test/b"),
            ("/b?c", "https://r.test:5000/b?c"),
            ("b", "https://r.test:5000/v2/a/blobs/b"),
            ("./b", "https://r.test:5000/v2/a/blobs/b"),
            ("../b", "https://r.test:5000/v2/a/b"),
            ("../../../../../b", "https://r.test:5000/b"),
            ("/a/./b/../c/..", "https://r.test:5000/a/"),
            ("..", "https://r.test:5000/v2/a/"),
            ("/a//b", "https://r.test:5000/a//b"),
            ("?c", "https://r.test:5000/v2/a/blobs/x?c"),
            ("", "https://r.test:5000/v2/a/blobs/x?y=/z"),
            ("#f", "https://r.test:5000/v2/a/blobs/x?y=/z"),
            ("/b#f", "https://r.test:5000/b"),
            // An address in a query or a fragment is not where it leads.
            (
                "/b?from=https://s.test/c",
                "https://r.test:5000/b?from=https://s.test/c",
            ),
            (
                "b?sig=a://b&x=../..",
                "https://r.test:5000/v2/a/blobs/b?sig=a://b&x=../..",
            ),
            (
                "?to=https://s.test",
                "https://r.test:5000/v2/a/blobs/x?to=https://s.test",
            ),
            ("/b#https://s.test", "https://r.test:5000/b"),
            ("b/c://d", "https://r.test:5000/v2/a/blobs/b/c://d"),
            ("./a:b", "https://r.test:5000/v2/a/blobs/a:b"),
        ] {
            assert_eq!(resolve(BASE, location), url, "{location}");
            assert!(origin::parse(url, "it").is_ok(), "{location}");
        }
        for base in ["https://r.test", "https://r.test?q"] {
            assert_eq!(resolve(base, "b?c://d"), "https://r.test/b?c://d");
        }
    }

    #[test]
    fn hostile_references_name_their_real_host_or_none() {
        for (location, host) in [
            ("https://evil.test?@r.test:5000/", Some("evil.test")),
            ("https://evil.test#@r.test:5000/", Some("evil.test")),
            ("//evil.test?https://r.test:5000/", Some("evil.test")),
            ("HTTPS://Evil.test/b", Some("evil.test")),
            ("http://r.test:5000/b", Some("r.test:5000")),
            (
                "https://r.test:5000.evil.test/b",
                Some("r.test:5000.evil.test"),
            ),
            // Backslashes are characters of a path, as they are not to browsers.
            ("/\\evil.test/b", Some("r.test:5000")),
            ("\\\\evil.test/b", Some("r.test:5000")),
            ("https://r.test:5000@evil.test/b", None),
            ("//user:password@evil.test/b", None),
            ("https:b", None),
            ("https:/b", None),
            ("https:///b", None),
            ("///evil.test/b", None),
            ("ftp://evil.test/b", None),
            ("file:///etc/shadow", None),
            ("unix:/run/secret.sock", None),
            ("sha256:abc", None),
            ("https ://evil.test/b", None),
            ("https://evil.test\\@r.test:5000/b", None),
            ("/b c", None),
        ] {
            let url = resolve(BASE, location);
            let origin = origin::parse(&url, "it").ok().map(|(_, origin)| origin);
            let authority = origin.as_ref().map(origin::Origin::authority);
            assert_eq!(authority, host, "{location} -> {url}");
        }
    }
}

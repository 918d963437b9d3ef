//! Tests of `headers`.

use super::*;

fn headers(written: &[(&str, &str)]) -> Result<(String, Option<String>), HeaderError> {
    let written: Vec<_> = written
        .iter()
        .map(|(name, value)| (Box::from(*name), Box::from(*value)))
        .collect();
    let headers = Headers::new(&written, &HeaderValue::from_static("kube-probe/1.36"))?;
    let text: Vec<_> = headers
        .map
        .iter()
        .map(|(name, value)| format!("{}: {}", titled(name), value.to_str().expect("text")))
        .collect();
    let host = headers
        .host
        .map(|host| host.to_str().expect("text").to_owned());
    Ok((text.join(", "), host))
}

#[test]
fn a_probe_overrides_and_removes_the_defaults() {
    const AGENT: &str = "User-Agent: kube-probe/1.36";
    for (written, sent) in [
        (&[][..], format!("{AGENT}, Accept: */*, Connection: close")),
        (
            &[
                ("user-agent", "mine"),
                ("User-Agent", "second"),
                ("accept", "text/plain"),
            ],
            "User-Agent: mine, Accept: text/plain, Connection: close".to_owned(),
        ),
        (
            &[("User-Agent", ""), ("Accept", ""), ("Accept", "x")],
            "Connection: close".to_owned(),
        ),
        (
            &[("X-A", " 1 "), ("X-a", "2"), ("Content-Length", "5")],
            format!("X-A: 1, X-A: 2, {AGENT}, Accept: */*, Connection: close"),
        ),
        (
            &[("Connection", "Close")],
            format!("Connection: Close, {AGENT}, Accept: */*"),
        ),
        (
            &[("Connection", "Upgrade"), ("Upgrade", "websocket")],
            format!("Connection: Upgrade, Upgrade: websocket, {AGENT}, Accept: */*"),
        ),
    ] {
        assert_eq!(headers(written).expect("headers").0, sent);
    }
}

#[test]
fn the_first_host_counts_unless_it_is_empty() {
    for (written, host) in [
        (
            &[("Host", "a.example"), ("host", "b.example")][..],
            Some("a.example"),
        ),
        (&[("Host", "")], None),
        (&[], None),
    ] {
        assert_eq!(headers(written).expect("headers").1.as_deref(), host);
    }
}

#[test]
fn what_cannot_be_sent_is_named() {
    for (name, value, error) in [
        ("a b", "x", "net/http: invalid header field name \"a b\""),
        (
            "x-one",
            "a\nb",
            "net/http: invalid header field value for \"X-One\"",
        ),
    ] {
        let refused = headers(&[(name, value)]).expect_err(name);
        assert_eq!(refused.to_string(), error);
    }
}

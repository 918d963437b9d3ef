//! The line of a request to port 10250: the path that decides over access and chooses the
//! answer, and the query; label selectors, which the local API takes.
//!
//! The modules are those of the crates `kubelet-api`, `server` and `http-core`. They are not linked: that
//! would bring the HTTP server and TLS along.

#![no_main]

// What the modules name by their crates is below.
extern crate self as rubelet_http_core;
extern crate self as rubelet_server;

use std::sync::Arc;

use http::Method;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/kubelet-api/src/attributes.rs"]
mod attributes;
#[path = "../../crates/kubelet-api/src/endpoint.rs"]
mod endpoint;
#[expect(dead_code, reason = "an empty selector is a question of lists")]
#[path = "../../crates/server/src/selector/label.rs"]
mod label;
#[path = "../../crates/kubelet-api/src/log_options.rs"]
mod log_options;
#[path = "../../crates/kubelet-api/src/path.rs"]
mod path;
#[path = "../../crates/kubelet-api/src/session_path.rs"]
mod session_path;
#[expect(dead_code, reason = "flags and numbers are those of the local API")]
#[path = "../../crates/http-core/src/query.rs"]
mod query;

use endpoint::{Endpoint, EndpointOptions};
use path::CleanPath;
use status::ApiError;

/// What the modules above need of other crates.
mod status {
    pub(crate) struct ApiError {
        pub(crate) message: String,
    }

    impl ApiError {
        pub(crate) fn bad_request(message: impl Into<String>) -> Self {
            let message = message.into();
            Self { message }
        }
    }
}

/// As `status`.
mod user {
    #[derive(Debug)]
    pub(crate) struct Attributes {
        pub(crate) verb: &'static str,
        pub(crate) subresource: &'static str,
        pub(crate) node: std::sync::Arc<str>,
    }
}

/// As `status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodRef {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// As `status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogSince {
    Seconds(u64),
    Time(jiff::Timestamp),
}

/// As `status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogOutput {
    Stdout,
    Stderr,
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    if choice & 0x80 != 0 {
        selector(text);
        return;
    }
    let methods = [Method::GET, Method::POST, Method::PUT, Method::HEAD];
    let method = &methods[usize::from(choice & 3)];
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    request(method, path, choice & 4 != 0);
    log(query);
});

fn request(method: &Method, path: &str, fine_grained: bool) {
    let Some(clean) = CleanPath::read(path) else {
        let found = endpoint::endpoint(method, None, &EndpointOptions::default());
        assert_eq!(found, Endpoint::Nowhere, "{path}");
        return;
    };
    for segment in clean.segments() {
        assert!(!matches!(segment, "" | "." | ".."), "{path}");
        assert!(!segment.contains(['/', '\0']), "{path}");
    }
    let slash = if clean.ends_with_slash() { "/" } else { "" };
    let written: String = clean.segments().into_iter().map(encoded).collect();
    let again = CleanPath::read(&format!("{written}{slash}"));
    assert_eq!(again.as_ref(), Some(&clean), "{path}");

    let node: Arc<str> = "node".into();
    let rights = attributes::attributes(method, &clean, &node, fine_grained);
    assert!(
        rights
            .iter()
            .all(|right| *right.node == *node && right.verb.len() < 7)
    );
    let first = rights.first().map(|right| right.subresource);
    let found = endpoint::endpoint(method, Some(&clean), &EndpointOptions::default());
    let needed = match &found {
        Endpoint::Metrics | Endpoint::ProbeMetrics => Some("metrics"),
        Endpoint::Pods | Endpoint::RunningPods if fine_grained => Some("pods"),
        Endpoint::Healthz(_) if fine_grained => Some("healthz"),
        Endpoint::Configz if fine_grained => Some("configz"),
        Endpoint::Pods
        | Endpoint::RunningPods
        | Endpoint::Healthz(_)
        | Endpoint::Configz
        | Endpoint::Session(..)
        | Endpoint::Run(_)
        | Endpoint::ContainerLogs { .. } => Some("proxy"),
        _ => first,
    };
    assert_eq!(first, needed, "the right fits what is answered at {path}");
    let plain = endpoint::endpoint(method, Some(&clean), &EndpointOptions::READ_ONLY);
    let open = !matches!(
        plain,
        Endpoint::ContainerLogs { .. } | Endpoint::RunningPods | Endpoint::Configz
    );
    assert!(
        open,
        "{path} needs a right, and the plain port asks for none"
    );
}

fn encoded(segment: &str) -> String {
    let bytes = segment.bytes().map(|byte| format!("%{byte:02x}"));
    format!("/{}", bytes.collect::<String>())
}

fn log(query: Option<&str>) {
    let Ok(options) = log_options::read(query) else {
        return;
    };
    assert_ne!(options.limit_bytes, Some(0));
    assert_ne!(options.since, Some(LogSince::Seconds(0)));
    assert!(options.output.is_none() || options.tail_lines.is_none());
    // Escaping what needs no escape changes nothing.
    let escape = |part: &str| {
        let parsed = query::decode(part, true).unwrap_or_default();
        encoded(&parsed).split_off(1)
    };
    let pairs = query.unwrap_or_default().split('&');
    let escaped: Vec<String> = pairs
        .map(|pair| match pair.split_once('=') {
            Some((key, value)) => format!("{}={}", escape(key), escape(value)),
            None => escape(pair),
        })
        .collect();
    let again = log_options::read(Some(&escaped.join("&")));
    assert_eq!(again.ok(), Some(options), "{query:?}");
}

fn selector(text: &str) {
    let labels = serde_json::json!({ "app": "web", "n": "-5", "example.com/tier": "" });
    match label::LabelSelector::parse(text) {
        Ok(selector) => {
            // A second requirement can only take away.
            let both = label::LabelSelector::parse(&format!("app=web,{text}"));
            if let (Ok(both), false) = (both, text.trim().is_empty()) {
                assert_eq!(both.matches(&labels), selector.matches(&labels), "{text}");
            }
        }
        Err(ApiError { message }) => {
            assert!(message.len() <= 16 * text.len() + 200, "{message}");
        }
    }
}

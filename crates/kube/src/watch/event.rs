//! One event of a watch.

use std::borrow::Cow;

use rubelet_yaml::{Received, read_json};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::error::ApiError;

/// The contents of a line of a watch.
#[derive(Debug)]
pub(super) enum Event<T> {
    /// `ADDED` or `MODIFIED`.
    Applied(Meta, Received<T>),
    Deleted(Meta, Received<T>),
    /// The version from which a new watch can continue.
    Bookmark {
        version: Box<str>,
        /// All objects that there were at the beginning have been sent.
        initial_events_end: bool,
    },
    /// The watch ends; why.
    Error(ApiError),
    /// An object that can't be read but for its metadata, if that; or an event of an unknown type.
    Unreadable {
        meta: Meta,
        problem: String,
    },
    /// No JSON.
    Damaged(serde_json::Error),
}

/// Identifies an object in its collection.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
    pub(crate) resource_version: Box<str>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WithMeta {
    #[serde(default)]
    metadata: Meta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BookmarkMeta {
    resource_version: Box<str>,
    annotations: Annotations,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "k8s.io/initial-events-end")]
    initial_events_end: String,
}

impl<T: DeserializeOwned> Event<T> {
    /// Reads a line.
    pub(super) fn read(line: &[u8]) -> Self {
        let envelope: Envelope<'_> = match serde_json::from_slice(line) {
            Ok(envelope) => envelope,
            Err(error) if error.is_data() => {
                return Self::Unreadable {
                    meta: Meta::default(),
                    problem: format!("not a watch event: {error}"),
                };
            }
            Err(error) => return Self::Damaged(error),
        };
        let object = envelope.object.map_or("null", RawValue::get);
        match envelope.kind.as_deref().unwrap_or_default() {
            "ADDED" | "MODIFIED" => Self::about(object, Self::Applied),
            "DELETED" => Self::about(object, Self::Deleted),
            "BOOKMARK" => {
                let read = read_json::<Bookmark>(object.as_bytes());
                let meta = read.map(|read| read.value.metadata).unwrap_or_default();
                Self::Bookmark {
                    version: meta.resource_version,
                    initial_events_end: meta.annotations.initial_events_end == "true",
                }
            }
            "ERROR" => Self::Error(ApiError::from_event(object)),
            other => Self::Unreadable {
                meta: meta(object.as_bytes()),
                problem: format!("unknown type of event {other:?}"),
            },
        }
    }

    fn about(object: &str, event: impl FnOnce(Meta, Received<T>) -> Self) -> Self {
        let meta = meta(object.as_bytes());
        match read_json(object.as_bytes()) {
            Ok(value) => event(meta, value),
            Err(error) => Self::Unreadable {
                meta,
                problem: error.to_string(),
            },
        }
    }
}

/// The metadata of an object, as far as it can be read.
pub(crate) fn meta(object: &[u8]) -> Meta {
    let read = read_json::<WithMeta>(object);
    read.map(|read| read.value.metadata).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct TestData {
        data: u32,
    }

    fn read(line: &str) -> Event<TestData> {
        Event::read(line.as_bytes())
    }

    #[test]
    fn events_of_all_types_are_read() {
        let object = r#"{"metadata":{"name":"a","namespace":"b","resourceVersion":"7"},"data":1}"#;
        let event = read(&format!(r#"{{"type":"MODIFIED","object":{object}}}"#));
        assert!(
            matches!(event, Event::Applied(meta, Received { value: TestData { data: 1 }, .. })
            if &*meta.name == "a" && &*meta.namespace == "b" && &*meta.resource_version == "7")
        );
        let event = read(&format!(r#"{{"object":{object},"type":"DELETED"}}"#));
        assert!(matches!(
            event,
            Event::Deleted(
                _,
                Received {
                    value: TestData { data: 1 },
                    ..
                }
            )
        ));
        let end = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9",
            "annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
        assert!(
            matches!(read(end), Event::Bookmark { version, initial_events_end: true }
            if &*version == "9")
        );
        let gone = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
        assert!(matches!(read(gone), Event::Error(error) if error.is_gone()));
    }

    #[test]
    fn an_object_that_cannot_be_read_is_still_named() {
        let odd = r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"data":"x"}}"#;
        assert!(matches!(read(odd), Event::Unreadable { meta, .. } if &*meta.name == "a"));
        assert!(matches!(
            read(r#"{"type":"NEW","object":{}}"#),
            Event::Unreadable { .. }
        ));
        assert!(matches!(read("half an ev"), Event::Damaged(_)));
        for odd in [
            "[]",
            "7",
            "{}",
            r#"{"type":null,"object":{}}"#,
            r#"{"type":"ADDED"}"#,
        ] {
            assert!(matches!(read(odd), Event::Unreadable { .. }), "{odd}");
        }
        let odd = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":null}}}"#;
        assert!(
            matches!(read(odd), Event::Bookmark { version, initial_events_end: false }
            if &*version == "9")
        );
        let odd = r#"{"type":"DELETED","object":{"metadata":{"name":"a","namespace":null,"resourceVersion":7},"data":null}}"#;
        assert!(
            matches!(read(odd), Event::Deleted(meta, Received { value: TestData { data: 0 }, .. })
            if &*meta.name == "a" && meta.resource_version.is_empty())
        );
    }

    #[test]
    fn whatever_is_odd_in_an_event_it_is_one() {
        let bookmark = serde_json::json!({"type": "BOOKMARK", "object": {
            "kind": "Pod", "metadata": {"resourceVersion": "9", "creationTimestamp": null,
                "annotations": {"k8s.io/initial-events-end": "true", "other": "x"}},
        }});
        let error = serde_json::json!({"type": "ERROR", "object": {
            "kind": "Status", "code": 410, "reason": "Expired", "message": "too old",
            "details": {"retryAfterSeconds": 7, "causes": []}, "metadata": {},
        }});
        let keep = ["/type"];
        for seed in 0..500 {
            let odd = |full| {
                let (nulls, absent) = sim_api::malformed::with_nulls(seed, full, &keep);
                let (wrong, ..) = sim_api::malformed::with_wrong_type(seed, full, &keep);
                [nulls, absent, wrong].map(|event| read(&event.to_string()))
            };
            for event in odd(&bookmark) {
                assert!(
                    matches!(event, Event::Bookmark { .. }),
                    "seed {seed}: {event:?}"
                );
            }
            for event in odd(&error) {
                assert!(matches!(event, Event::Error(_)), "seed {seed}: {event:?}");
            }
        }
    }
}

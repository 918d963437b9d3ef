//! One event of a watch.

use std::borrow::Cow;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::error::ApiError;

/// What a line of a watch says.
#[derive(Debug)]
pub(super) enum Event<T> {
    /// `ADDED` or `MODIFIED`.
    Applied(Meta, T),
    Deleted(Meta, T),
    /// The version from which the watch can go on.
    Bookmark {
        version: Box<str>,
        /// All objects that there were at the beginning have been sent.
        initial_events_end: bool,
    },
    /// The watch ends; why.
    Error(ApiError),
    /// An object of which only the metadata can be read, or an event of an unknown type.
    Unread {
        meta: Meta,
        problem: String,
    },
    /// Not an event at all.
    Damaged(serde_json::Error),
}

/// What tells objects of one collection apart.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    pub(super) resource_version: Box<str>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct WithMeta {
    #[serde(default)]
    metadata: Meta,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    #[serde(default)]
    resource_version: Box<str>,
    #[serde(default)]
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
            Err(error) => return Self::Damaged(error),
        };
        let object = envelope.object.get();
        match &*envelope.kind {
            "ADDED" | "MODIFIED" => Self::about(object, Self::Applied),
            "DELETED" => Self::about(object, Self::Deleted),
            "BOOKMARK" => match serde_json::from_str::<Bookmark>(object) {
                Ok(bookmark) => Self::Bookmark {
                    version: bookmark.metadata.resource_version,
                    initial_events_end: bookmark.metadata.annotations.initial_events_end == "true",
                },
                Err(error) => Self::Damaged(error),
            },
            "ERROR" => Self::Error(ApiError::from_event(object)),
            other => Self::Unread {
                meta: meta(object).unwrap_or_default(),
                problem: format!("unknown type of event {other:?}"),
            },
        }
    }

    fn about(object: &str, event: impl FnOnce(Meta, T) -> Self) -> Self {
        let meta = match meta(object) {
            Ok(meta) => meta,
            Err(error) => return Self::Damaged(error),
        };
        match serde_json::from_str(object) {
            Ok(value) => event(meta, value),
            Err(error) => Self::Unread {
                meta,
                problem: error.to_string(),
            },
        }
    }
}

/// The metadata of an object.
pub(super) fn meta(object: &str) -> Result<Meta, serde_json::Error> {
    serde_json::from_str::<WithMeta>(object).map(|object| object.metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Data {
        data: u32,
    }

    fn read(line: &str) -> Event<Data> {
        Event::read(line.as_bytes())
    }

    #[test]
    fn events_of_all_types_are_read() {
        let object = r#"{"metadata":{"name":"a","namespace":"b","resourceVersion":"7"},"data":1}"#;
        let event = read(&format!(r#"{{"type":"MODIFIED","object":{object}}}"#));
        assert!(matches!(event, Event::Applied(meta, Data { data: 1 })
            if &*meta.name == "a" && &*meta.namespace == "b" && &*meta.resource_version == "7"));
        let event = read(&format!(r#"{{"object":{object},"type":"DELETED"}}"#));
        assert!(matches!(event, Event::Deleted(_, Data { data: 1 })));
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
        assert!(matches!(read(odd), Event::Unread { meta, .. } if &*meta.name == "a"));
        assert!(matches!(
            read(r#"{"type":"NEW","object":{}}"#),
            Event::Unread { .. }
        ));
        assert!(matches!(read("half an ev"), Event::Damaged(_)));
    }
}

//! The two forms of events: kept in the core group's, shown in the form of the group that is asked.

use std::borrow::Cow;

use serde_json::Value;

use crate::Kind;

const NEWER: &str = "events.k8s.io";

/// Fields of the core form, and their names in the newer one.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// `apiVersion` of the form in which objects of a kind are kept.
pub(crate) fn kept_api_version(kind: &Kind) -> String {
    if kind.group == NEWER {
        "v1".to_owned()
    } else {
        kind.api_version()
    }
}

/// The form in which an object is kept.
pub(crate) fn kept(kind: &Kind, mut object: Value) -> Value {
    if kind.group == NEWER {
        rename(&mut object, |(core, newer)| (newer, core));
        object["apiVersion"] = "v1".into();
    }
    object
}

/// A kept object in the form of the kind.
pub(crate) fn shown(kind: &Kind, object: &Value) -> Value {
    seen(kind, object).into_owned()
}

/// The same without a copy where the forms are the same.
pub(crate) fn seen<'a>(kind: &Kind, object: &'a Value) -> Cow<'a, Value> {
    if kind.group != NEWER {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    rename(&mut object, |names| names);
    object["apiVersion"] = kind.api_version().into();
    Cow::Owned(object)
}

fn rename(
    object: &mut Value,
    order: fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    for names in NAMES {
        let (from, to) = order(names);
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_written_in_one_form_is_read_in_the_other() {
        let newer = Kind::of("events.events.k8s.io").unwrap();
        let event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "reason": "Pulled",
            "regarding": { "name": "web" }, "note": "done", "reportingController": "kubelet",
        });
        let core = kept(newer, event.clone());
        assert_eq!(core["message"], "done");
        assert_eq!(core["involvedObject"]["name"], "web");
        assert_eq!(core["apiVersion"], "v1");
        assert_eq!(shown(newer, &core), event);
        assert_eq!(shown(Kind::of("events").unwrap(), &core), core);
    }
}

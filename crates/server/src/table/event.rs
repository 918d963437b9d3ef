//! Events: LAST SEEN, TYPE, REASON, OBJECT, MESSAGE and the wide columns.

use jiff::Timestamp;
use serde_json::Value;

use super::{Column, age, column, text, time};

pub(super) const COLUMNS: &[Column] = &[
    column("Last Seen", "Time since it happened last."),
    column("Type", "Normal or Warning."),
    column("Reason", "One word on why."),
    column("Object", "What it happened to."),
    column("Subobject", "Which part of the object.").wide(),
    column("Source", "Who reports it.").wide(),
    column("Message", "What happened."),
    column("First Seen", "Time since it happened first.").wide(),
    column("Count", "How often it happened.").wide(),
    column("Name", "Name of the event.").wide().named(),
];

/// When an event happened, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTimes {
    /// The first time.
    pub first: Option<Timestamp>,
    /// The last time.
    pub last: Option<Timestamp>,
    /// Number of occurrences, at least 1.
    pub count: u64,
}

/// Reads the times from whichever of the event's old and new fields hold them.
#[must_use]
pub fn event_times(event: &Value) -> EventTimes {
    let first = time(event, "/firstTimestamp").or_else(|| time(event, "/eventTime"));
    let last = time(event, "/series/lastObservedTime")
        .or_else(|| time(event, "/lastTimestamp"))
        .or(first);
    let counts = [event.pointer("/series/count"), event.pointer("/count")];
    let count = counts
        .into_iter()
        .flatten()
        .find_map(Value::as_u64)
        .unwrap_or(1)
        .max(1);
    EventTimes { first, last, count }
}

pub(super) fn cells(event: &Value, now: Timestamp) -> Vec<Value> {
    let times = event_times(event);
    let kind = text(event, "/involvedObject/kind").to_lowercase();
    let object = match text(event, "/involvedObject/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let either = |old: &str, new: &str| match text(event, old) {
        "" => text(event, new).to_owned(),
        value => value.to_owned(),
    };
    let component = either("/source/component", "/reportingComponent");
    let source = match either("/source/host", "/reportingInstance") {
        instance if instance.is_empty() => component,
        instance => format!("{component}, {instance}"),
    };
    vec![
        age::since(times.last, now).into(),
        text(event, "/type").into(),
        text(event, "/reason").into(),
        object.into(),
        text(event, "/involvedObject/fieldPath").into(),
        source.into(),
        text(event, "/message").trim().into(),
        age::since(times.first, now).into(),
        times.count.into(),
        text(event, "/metadata/name").into(),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(event: &Value) -> Vec<String> {
        let now = "2026-03-01T12:00:00Z".parse().expect("a time");
        let cells = cells(event, now);
        cells
            .iter()
            .map(|cell| cell.as_str().map_or(cell.to_string(), str::to_owned))
            .collect()
    }

    #[test]
    fn old_and_new_fields_give_the_same_row() {
        let old = json!({
            "metadata": { "name": "web.1" },
            "involvedObject":
                { "kind": "Pod", "name": "web", "fieldPath": "spec.containers{a}" },
            "type": "Warning", "reason": "BackOff", "message": "back-off\n",
            "source": { "component": "kubelet", "host": "n1" },
            "firstTimestamp": "2026-03-01T11:00:00Z",
            "lastTimestamp": "2026-03-01T11:59:30Z",
            "count": 7,
        });
        let expected = [
            "30s",
            "Warning",
            "BackOff",
            "pod/web",
            "spec.containers{a}",
            "kubelet, n1",
            "back-off",
            "60m",
            "7",
            "web.1",
        ];
        assert_eq!(row(&old), expected);
        let new = json!({
            "metadata": { "name": "web.1" },
            "involvedObject":
                { "kind": "Pod", "name": "web", "fieldPath": "spec.containers{a}" },
            "type": "Warning", "reason": "BackOff", "message": "back-off",
            "reportingComponent": "kubelet", "reportingInstance": "n1",
            "firstTimestamp": null, "lastTimestamp": null,
            "eventTime": "2026-03-01T11:00:00.000000Z",
            "series": { "count": 7, "lastObservedTime": "2026-03-01T11:59:30.000000Z" },
        });
        assert_eq!(row(&new), expected);
    }

    #[test]
    fn a_single_event_counts_once_and_a_missing_time_is_unknown() {
        let single = json!({ "eventTime": "2026-03-01T11:59:00Z", "type": "Normal" });
        assert_eq!(row(&single)[0], "60s");
        assert_eq!(row(&single)[8], "1");
        assert_eq!(row(&json!({}))[0], "<unknown>");
    }
}

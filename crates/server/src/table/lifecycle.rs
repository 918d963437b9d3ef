//! Lifecycle events: TIME, POD, CONTAINER, EVENT, CAUSE, AFTER, SYNC and the wide columns.

use serde_json::Value;

use super::{Column, column, or_none, text, time};

pub(super) const COLUMNS: &[Column] = &[
    column("Time", "When the pod's task was notified."),
    column("Pod", "Name of the pod; its UID where it has no task yet."),
    column("Container", "Name of the container; <sandbox> or <pod>."),
    column("Event", "What happened, in the kubelet's words."),
    column("Cause", "What led to the look at the pod that found it."),
    column("After", "Time from the runtime's stamp on the change."),
    column("Heard", "Time from the runtime's event.").wide(),
    column("Start", "Time until the pod's task began to work on it.").wide(),
    column("Sync", "Time until the pod's task had worked on it."),
    column("ID", "The runtime's identifier.").wide(),
    column("Name", "Number of the event since the agent's start.")
        .wide()
        .named(),
];

pub(super) fn cells(event: &Value) -> Vec<Value> {
    let at = time(event, "/time").map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string());
    let pod = match text(event, "/pod/name") {
        "" => text(event, "/pod/uid"),
        name => name,
    };
    let container = match (text(event, "/container"), text(event, "/id")) {
        ("", "") => "<pod>",
        ("", _) => "<sandbox>",
        (name, _) => name,
    };
    let took = |field: &str| length(event[field].as_f64());
    vec![
        at.unwrap_or_default().into(),
        pod.into(),
        container.into(),
        text(event, "/type").into(),
        text(event, "/cause").into(),
        took("afterChangeSeconds"),
        took("afterEventSeconds"),
        took("toStartSeconds"),
        took("toSyncSeconds"),
        or_none(text(event, "/id")),
        text(event, "/metadata/name").into(),
    ]
}

/// A duration with about three significant digits; `-` if it is unknown.
fn length(seconds: Option<f64>) -> Value {
    let text = match seconds {
        None => "-".to_owned(),
        Some(seconds) if seconds < 0.1 => format!("{:.1}ms", seconds * 1e3),
        Some(seconds) if seconds < 1.0 => format!("{:.0}ms", seconds * 1e3),
        Some(seconds) if seconds < 100.0 => format!("{seconds:.1}s"),
        Some(seconds) => format!("{seconds:.0}s"),
    };
    text.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(event: &Value) -> Vec<String> {
        let cells = cells(event);
        cells
            .iter()
            .map(|cell| cell.as_str().unwrap_or_default().to_owned())
            .collect()
    }

    #[test]
    fn an_event_shows_how_long_each_part_took() {
        let mut event = json!({
            "metadata": { "name": "000000000012", "namespace": "default" },
            "time": "2026-03-01T12:00:00.123987Z",
            "pod": { "name": "web-n1", "uid": "u" },
            "container": "web",
            "id": "c0ffee",
            "type": "ContainerDied",
            "cause": "event STOPPED",
            "afterChangeSeconds": 0.0123,
            "afterEventSeconds": 0.0012,
            "toStartSeconds": 0.0004,
            "toSyncSeconds": 0.31,
        });
        assert_eq!(
            row(&event),
            [
                "2026-03-01T12:00:00.123Z",
                "web-n1",
                "web",
                "ContainerDied",
                "event STOPPED",
                "12.3ms",
                "1.2ms",
                "0.4ms",
                "310ms",
                "c0ffee",
                "000000000012",
            ]
        );
        event["toSyncSeconds"] = 65.04.into();
        event["toStartSeconds"] = Value::Null;
        event["afterChangeSeconds"] = 310.2.into();
        assert_eq!(row(&event)[5], "310s");
        assert_eq!(row(&event)[7..9], ["-", "65.0s"]);
    }

    #[test]
    fn sandboxes_and_whole_pods_are_distinguished_from_containers() {
        let sandbox = json!({ "pod": { "uid": "u" }, "id": "c0ffee" });
        assert_eq!(row(&sandbox)[..3], ["", "u", "<sandbox>"]);
        assert_eq!(row(&json!({}))[2], "<pod>");
        assert_eq!(row(&json!({}))[9], "<none>");
    }
}

//! Manifests: FILE, PODS, STATUS, AGE, REASON.

use jiff::Timestamp;
use serde_json::Value;

use super::{Column, age, column, entries, or_none, text, time};

pub(super) const COLUMNS: &[Column] = &[
    column("File", "Path of the file, or the URL.").named(),
    column("Pods", "Pods that come from it."),
    column("Status", "ok, bad, empty or skipped."),
    column("Age", "Time since the version that runs was read."),
    column("Reason", "What is wrong with it."),
    column("Changed", "Time since the file changed last.").wide(),
];

pub(super) fn cells(manifest: &Value, now: Timestamp) -> Vec<Value> {
    let places = ["/spec/path", "/spec/url", "/metadata/name"];
    let file = places
        .into_iter()
        .map(|place| text(manifest, place))
        .find(|text| !text.is_empty());
    let pods: Vec<String> = entries(manifest, "/status/pods")
        .iter()
        .map(pod_name)
        .collect();
    let good = time(manifest, "/status/lastGoodTime");
    vec![
        file.unwrap_or_default().into(),
        or_none(&pods.join(",")),
        text(manifest, "/status/state").to_lowercase().into(),
        good.map_or_else(|| or_none(""), |good| age::since(Some(good), now).into()),
        or_none(&reason(manifest)),
        age::since(time(manifest, "/status/lastChangeTime"), now).into(),
    ]
}

fn pod_name(pod: &Value) -> String {
    match (text(pod, "/namespace"), text(pod, "/name")) {
        ("" | "default", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// The message with its place in front, or at least the reason.
fn reason(manifest: &Value) -> String {
    let message = match text(manifest, "/status/message") {
        "" => text(manifest, "/status/reason"),
        message => message,
    };
    // One row is one line; a longer explanation is in `-o yaml`.
    let message = message.lines().next().unwrap_or_default();
    let field = text(manifest, "/status/field");
    let line = manifest.pointer("/status/line").and_then(Value::as_u64);
    let mut place = Vec::new();
    place.extend(
        line.filter(|line| !message.contains(&format!("line {line}")))
            .map(|line| format!("line {line}")),
    );
    place.extend((!field.is_empty() && !message.contains(field)).then(|| field.to_owned()));
    if place.is_empty() {
        message.to_owned()
    } else {
        format!("{}: {message}", place.join(": "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(manifest: &Value) -> Vec<String> {
        let now = "2026-03-01T12:00:00Z".parse().expect("a time");
        cells(manifest, now)
            .iter()
            .map(|cell| cell.as_str().unwrap_or_default().to_owned())
            .collect()
    }

    #[test]
    fn a_good_manifest_shows_its_pods() {
        let manifest = json!({
            "metadata": { "name": "web.yaml" },
            "spec": { "path": "/etc/kubernetes/manifests/web.yaml" },
            "status": {
                "state": "Ok",
                "pods": [
                    { "namespace": "default", "name": "web-n1", "uid": "1" },
                    { "namespace": "kube-system", "name": "dns-n1", "uid": "2" },
                ],
                "lastGoodTime": "2026-03-01T11:55:00Z",
                "lastChangeTime": "2026-03-01T11:55:00Z",
            },
        });
        assert_eq!(
            row(&manifest),
            [
                "/etc/kubernetes/manifests/web.yaml",
                "web-n1,kube-system/dns-n1",
                "ok",
                "5m",
                "<none>",
                "5m"
            ]
        );
    }

    #[test]
    fn a_bad_manifest_says_what_and_where() {
        let mut manifest = json!({
            "metadata": { "name": "a.yaml" },
            "status": {
                "state": "Bad", "reason": "UnknownField", "message": "unknown field\nsee docs",
                "line": 7, "field": "spec.containers[0].imge",
                "lastChangeTime": "2026-03-01T11:59:50Z",
            },
        });
        assert_eq!(
            row(&manifest),
            [
                "a.yaml",
                "<none>",
                "bad",
                "<none>",
                "line 7: spec.containers[0].imge: unknown field",
                "10s"
            ]
        );
        manifest["status"]["message"] = "line 7: spec.containers[0].imge: unknown field".into();
        assert_eq!(
            row(&manifest)[4],
            "line 7: spec.containers[0].imge: unknown field"
        );
    }
}

//! The pod as a whole, in kubectl's order.

use jiff::Timestamp;
use rubelet_server::table::{NEXT_TRY_ANNOTATION, age};
use serde_json::Value;

use super::{
    container, events,
    json::{date, list, map, string},
    text::Text,
    volume,
};

/// Values longer than this start on their own line.
const LONG: usize = 140;

/// Describes a v1 Pod and its events.
pub(super) fn describe(pod: &Value, events: &[Value], now: Timestamp) -> String {
    let mut text = Text::default();
    identity(&mut text, pod);
    state(&mut text, pod, now);
    addresses(&mut text, pod);
    for (title, field) in [
        ("Init Containers", "initContainers"),
        ("Containers", "containers"),
        ("Ephemeral Containers", "ephemeralContainers"),
    ] {
        container::describe_all(&mut text, title, pod, field);
    }
    readiness_gates(&mut text, pod);
    conditions(&mut text, pod);
    volume::describe_all(&mut text, pod);
    text.field(0, "QoS Class", string(pod, "/status/qosClass"));
    text.entries("Node-Selectors", pairs(&pod["spec"]["nodeSelector"], "="));
    text.entries(
        "Tolerations",
        list(pod, "/spec/tolerations").iter().map(toleration),
    );
    events::describe(&mut text, events, now);
    text.finish()
}

fn identity(text: &mut Text, pod: &Value) {
    text.field(0, "Name", string(pod, "/metadata/name"));
    text.field(0, "Namespace", string(pod, "/metadata/namespace"));
    if let Some(priority) = pod["spec"]["priority"].as_i64() {
        text.field(0, "Priority", priority.to_string());
    }
    for (key, pointer) in [
        ("Priority Class Name", "/spec/priorityClassName"),
        ("Runtime Class Name", "/spec/runtimeClassName"),
        ("Service Account", "/spec/serviceAccountName"),
    ] {
        optional(text, key, string(pod, pointer));
    }
    match string(pod, "/spec/nodeName") {
        "" => text.field(0, "Node", "<none>"),
        node => text.field(
            0,
            "Node",
            format!("{node}/{}", string(pod, "/status/hostIP")),
        ),
    }
    optional(text, "Start Time", &date(string(pod, "/status/startTime")));
    text.entries("Labels", pairs(&pod["metadata"]["labels"], "="));
    text.entries("Annotations", annotations(&pod["metadata"]["annotations"]));
}

fn state(text: &mut Text, pod: &Value, now: Timestamp) {
    let phase = string(pod, "/status/phase");
    let deletion = string(pod, "/metadata/deletionTimestamp")
        .parse::<Timestamp>()
        .ok();
    match deletion.filter(|_| !matches!(phase, "Failed" | "Succeeded")) {
        Some(deletion) => {
            let lasts = age::since(Some(deletion), now);
            text.field(0, "Status", format!("Terminating (lasts {lasts})"));
            if let Some(grace) = pod["metadata"]["deletionGracePeriodSeconds"].as_i64() {
                text.field(0, "Termination Grace Period", format!("{grace}s"));
            }
        }
        None => text.field(0, "Status", phase),
    }
    optional(text, "Reason", string(pod, "/status/reason"));
    optional(text, "Message", string(pod, "/status/message"));
    let seccomp = &pod["spec"]["securityContext"]["seccompProfile"];
    optional(text, "SeccompProfile", string(seccomp, "/type"));
    optional(
        text,
        "LocalhostProfile",
        string(seccomp, "/localhostProfile"),
    );
}

fn addresses(text: &mut Text, pod: &Value) {
    text.field(0, "IP", string(pod, "/status/podIP"));
    let addresses = list(pod, "/status/podIPs");
    if addresses.is_empty() {
        text.field(0, "IPs", "<none>");
        return;
    }
    text.line(0, "IPs:");
    for address in addresses {
        text.field(1, "IP", string(address, "/ip"));
    }
}

fn readiness_gates(text: &mut Text, pod: &Value) {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return;
    }
    text.line(0, "Readiness Gates:");
    text.line(1, "Type\tStatus");
    for gate in gates {
        let kind = string(gate, "/conditionType");
        let mut conditions = list(pod, "/status/conditions").iter();
        let status = conditions
            .find(|condition| condition["type"] == kind)
            .map_or("<none>", |condition| string(condition, "/status"));
        text.line(1, format!("{kind}\t{status}"));
    }
}

fn conditions(text: &mut Text, pod: &Value) {
    let conditions = list(pod, "/status/conditions");
    if conditions.is_empty() {
        return;
    }
    text.line(0, "Conditions:");
    // kubectl omits reasons; on a standalone node they are what users look for.
    let explained = conditions
        .iter()
        .any(|condition| !reason(condition).is_empty());
    text.line(
        1,
        if explained {
            "Type\tStatus\tReason"
        } else {
            "Type\tStatus"
        },
    );
    for condition in conditions {
        let (kind, status) = (string(condition, "/type"), string(condition, "/status"));
        let separator = if explained { "\t" } else { "" };
        text.line(
            1,
            format!("{kind}\t{status}{separator}{}", reason(condition)),
        );
    }
}

fn reason(condition: &Value) -> String {
    match (string(condition, "/reason"), string(condition, "/message")) {
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {}", message.replace(['\n', '\t'], " ")),
    }
}

fn annotations(annotations: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, value) in map(annotations) {
        // The first repeats the whole object; the second is printed with the containers.
        if key == "kubectl.kubernetes.io/last-applied-configuration" || key == NEXT_TRY_ANNOTATION {
            continue;
        }
        let value = value.trim_end_matches('\n').replace('\t', " ");
        if !value.contains('\n') && key.len() + value.len() + 2 <= LONG {
            lines.push(format!("{key}: {value}"));
            continue;
        }
        lines.push(format!("{key}:"));
        lines.extend(value.lines().map(|line| format!("  {}", shortened(line))));
    }
    lines
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

fn toleration(toleration: &Value) -> String {
    let part = |name: &str| toleration[name].as_str().unwrap_or_default();
    let mut text = part("key").to_owned();
    if !part("value").is_empty() {
        text.push_str(&format!("={}", part("value")));
    }
    if !part("effect").is_empty() {
        text.push_str(&format!(":{}", part("effect")));
    }
    if part("operator") == "Exists" && part("value").is_empty() {
        text.push_str(if text.is_empty() {
            "op=Exists"
        } else {
            " op=Exists"
        });
    }
    if let Some(seconds) = toleration["tolerationSeconds"].as_i64() {
        text.push_str(&format!(" for {seconds}s"));
    }
    text
}

fn optional(text: &mut Text, key: &str, value: &str) {
    if !value.is_empty() {
        text.field(0, key, value);
    }
}

fn pairs(object: &Value, between: &str) -> Vec<String> {
    let entries = map(object).into_iter();
    entries
        .map(|(key, value)| format!("{key}{between}{value}"))
        .collect()
}

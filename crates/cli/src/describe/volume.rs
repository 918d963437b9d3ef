//! The volumes of a pod.

use serde_json::Value;

use super::{
    json::{list, map, scalar, string},
    text::Text,
};

/// Describes all volumes.
pub(super) fn describe_all(text: &mut Text, pod: &Value) {
    let volumes = list(pod, "/spec/volumes");
    if volumes.is_empty() {
        text.field(0, "Volumes", "<none>");
        return;
    }
    text.line(0, "Volumes:");
    for volume in volumes {
        text.line(1, format!("{}:", string(volume, "/name")));
        describe(text, volume);
    }
}

fn describe(text: &mut Text, volume: &Value) {
    let (host_path, empty_dir) = (&volume["hostPath"], &volume["emptyDir"]);
    if host_path.is_object() {
        text.field(2, "Type", "HostPath (bare host directory volume)");
        text.field(2, "Path", string(host_path, "/path"));
        text.field(2, "HostPathType", string(host_path, "/type"));
    } else if empty_dir.is_object() {
        text.field(
            2,
            "Type",
            "EmptyDir (a temporary directory that shares a pod's lifetime)",
        );
        text.field(2, "Medium", string(empty_dir, "/medium"));
        let limit = &empty_dir["sizeLimit"];
        let limit = if limit.is_null() {
            "<unset>".to_owned()
        } else {
            scalar(limit)
        };
        text.field(2, "SizeLimit", limit);
    } else {
        other(text, volume);
    }
}

/// A volume type without its own description here: its type and its scalar fields.
fn other(text: &mut Text, volume: &Value) {
    let source = volume
        .as_object()
        .into_iter()
        .flatten()
        .find(|(key, _)| *key != "name");
    let Some((kind, source)) = source else {
        text.line(2, "<unknown>");
        return;
    };
    text.field(2, "Type", kind);
    for (key, value) in map(source) {
        if !source[key].is_object() && !source[key].is_array() {
            text.field(2, key, value);
        }
    }
}

//! Hooks as the annotations of containers hold them.

use k8s_openapi::api::core::v1 as k8s;

use super::Hook;
use crate::parse;

/// The hook in the annotation `io.kubernetes.container.preStopHandler`, which holds the JSON of a
/// v1 LifecycleHandler; `None` where it holds something else. `ports_json` is the annotation
/// `io.kubernetes.container.ports`, the JSON of a list of v1 ContainerPorts: names of ports are
/// looked up there.
#[must_use]
pub fn hook_from_annotation(json: &str, ports_json: Option<&str>) -> Option<Hook> {
    let handler: k8s::LifecycleHandler = serde_json::from_str(json).ok()?;
    let ports: Option<Vec<k8s::ContainerPort>> =
        ports_json.and_then(|json| serde_json::from_str(json).ok());
    parse::hook_from_annotation(handler, ports.unwrap_or_default())
}

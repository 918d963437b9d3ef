//! Builds the pod object that is needed to remove a pod known only from the runtime or from its
//! directory.

use std::{collections::BTreeMap, time::Duration};

use rubelet_api::pod::{Pod, PodSource, PodSpec, RestartPolicy};
use rubelet_base::{PodName, PodUid};
use rubelet_pleg::RuntimePod;

/// Grace period of a pod that specifies none (the default of the API).
pub(super) const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// A pod without containers, which suffices to stop and remove it.
pub(super) fn pod_of(found: &RuntimePod, node_name: &str) -> Pod {
    let source = match found.source.as_deref() {
        Some("http") => PodSource::Http,
        Some("api") => PodSource::Api,
        _ => PodSource::File,
    };
    let grace = found.grace.unwrap_or(DEFAULT_GRACE);
    pod(&found.uid, found.name.clone(), source, grace, node_name)
}

/// A pod whose UID alone is known.
pub(super) fn leftover(uid: &PodUid, node_name: &str) -> Pod {
    let name = PodName::new("", uid.as_str());
    pod(uid, name, PodSource::File, DEFAULT_GRACE, node_name)
}

fn pod(uid: &PodUid, name: PodName, source: PodSource, grace: Duration, node_name: &str) -> Pod {
    let json = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": *name.name,
            "namespace": *name.namespace,
            "uid": uid.as_str(),
            "annotations": { "kubernetes.io/config.source": source.as_str() },
        },
        "spec": {
            "nodeName": node_name,
            "containers": [],
            "terminationGracePeriodSeconds": grace.as_secs(),
        },
    });
    Pod {
        uid: uid.clone(),
        name,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        generation: 0,
        created: None,
        deletion: None,
        source,
        spec: PodSpec {
            restart_policy: RestartPolicy::Never,
            termination_grace_period: grace,
            node_name: node_name.into(),
            ..PodSpec::default()
        },
        sandbox_definition: None,
        resize_infeasible: None,
        json: json.to_string().into(),
    }
}

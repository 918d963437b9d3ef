//! A scheduler that ignores resources: a pod is bound to the ready node with the fewest pods whose
//! taints it tolerates and whose labels it selects. Pods with volume claims stay pending: there are no
//! claims here, and the real scheduler does not bind a pod whose claim is missing.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use crate::{Kind, clock, meta, state::ServerState, store::Store, subresource::bind_pod};

/// Binds new pods, and pending ones when nodes change.
pub(crate) async fn run(shared: Arc<ServerState>) {
    let mut changes = shared.changes();
    let mut position = 0;
    loop {
        changes.mark_unchanged();
        if shared.config().scheduler {
            shared.with_store(|store| {
                if scheduling_changed_since(store, position) {
                    schedule(&shared, store);
                }
                position = store.version();
            });
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Whether an unbound pod or a node has changed since then.
fn scheduling_changed_since(store: &Store, position: u64) -> bool {
    let Ok(mut changes) = store.since(position) else {
        return true;
    };
    changes.any(|change| match change.storage {
        "nodes" => true,
        "pods" => !change.removed && meta::text(&change.new, "/spec/nodeName").is_empty(),
        _ => false,
    })
}

fn schedule(shared: &ServerState, store: &mut Store) {
    let pods = store.list("pods", None);
    let nodes = store.list("nodes", None);
    let mut loads: BTreeMap<String, usize> = BTreeMap::new();
    for pod in &pods {
        let node = meta::text(pod, "/spec/nodeName");
        *loads.entry(node.to_owned()).or_default() += 1;
    }
    let waiting = pods.iter().filter(|pod| {
        meta::text(pod, "/spec/nodeName").is_empty()
            && meta::text(pod, "/spec/schedulerName") == "default-scheduler"
            && meta::entries(pod, "/spec/schedulingGates").is_empty()
            && !meta::is_deleting(pod)
            && meta::text(pod, "/status/phase") == "Pending"
    });
    for pod in waiting {
        let missing = missing_claim(pod);
        let fitting = nodes
            .iter()
            .filter(|node| missing.is_none() && can_run_on(pod, node));
        let load = |name: &str| loads.get(name).copied().unwrap_or(0);
        let node = fitting
            .map(|node| meta::name(node))
            .min_by_key(|name| load(name));
        match node {
            Some(node) => {
                let kind = Kind::of("pods").expect("it is in the table");
                let place = (kind, meta::namespace(pod), meta::name(pod));
                if bind_pod(shared, store, place, node).is_ok() {
                    *loads.entry(node.to_owned()).or_default() += 1;
                    record_event(shared, store, pod, node);
                }
            }
            None => {
                let reason = missing.map_or(String::new(), |reason| format!(": {reason}"));
                let message = format!("0/{} nodes are available{reason}.", nodes.len());
                set_unschedulable(shared, store, pod, &message);
            }
        }
    }
}

/// The scheduler's message about the first missing volume claim.
fn missing_claim(pod: &Value) -> Option<String> {
    meta::entries(pod, "/spec/volumes")
        .iter()
        .find_map(|volume| {
            let name = match meta::text(volume, "/persistentVolumeClaim/claimName") {
                "" if volume.get("ephemeral").is_none_or(Value::is_null) => return None,
                "" => format!("{}-{}", meta::name(pod), meta::text(volume, "/name")),
                name => name.to_owned(),
            };
            Some(format!("persistentvolumeclaim {name:?} not found"))
        })
}

/// Whether the pod can run on a node.
fn can_run_on(pod: &Value, node: &Value) -> bool {
    let conditions = meta::entries(node, "/status/conditions");
    let is_ready = conditions
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let labels = &node["metadata"]["labels"];
    let selector = pod.pointer("/spec/nodeSelector").and_then(Value::as_object);
    let is_selected = selector
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value));
    let tolerations = meta::entries(pod, "/spec/tolerations");
    let taints = meta::entries(node, "/spec/taints");
    let is_tolerated = taints
        .iter()
        .filter(|taint| taint["effect"] != "PreferNoSchedule")
        .all(|taint| tolerations.iter().any(|one| tolerates(one, taint)));
    is_ready && is_selected && is_tolerated && !meta::flag(node, "/spec/unschedulable")
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let text = |place| meta::text(toleration, place);
    let effect_fits = ["", meta::text(taint, "/effect")].contains(&text("/effect"));
    let key_fits = ["", meta::text(taint, "/key")].contains(&text("/key"));
    let is_any = text("/operator") == "Exists";
    let value_fits = is_any || text("/value") == meta::text(taint, "/value");
    let key_is_said = is_any || !text("/key").is_empty();
    effect_fits && key_fits && value_fits && key_is_said
}

fn record_event(shared: &ServerState, store: &mut Store, pod: &Value, node: &str) {
    let now = shared.clock.now();
    let (namespace, name) = (meta::namespace(pod), meta::name(pod));
    let mut dice = shared.dice();
    store.put(
        "events",
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": format!("{name}.{}{}", dice.suffix(), dice.suffix()),
                "namespace": namespace,
                "uid": dice.uid(),
                "creationTimestamp": clock::seconds(now),
            },
            "involvedObject": {
                "apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name,
                "uid": meta::uid(pod),
                "resourceVersion": pod["metadata"]["resourceVersion"],
            },
            "reason": "Scheduled",
            "message": format!("Successfully assigned {namespace}/{name} to {node}"),
            "source": {},
            "eventTime": clock::micros(now),
            "reportingComponent": "default-scheduler",
            "reportingInstance": "default-scheduler",
            "action": "Binding",
            "type": "Normal",
        }),
    );
}

fn set_unschedulable(shared: &ServerState, store: &mut Store, pod: &Value, message: &str) {
    let mut conditions = meta::entries(pod, "/status/conditions").to_vec();
    let said = conditions
        .iter()
        .any(|one| one["type"] == "PodScheduled" && one["message"] == message);
    if said {
        return;
    }
    conditions.retain(|condition| condition["type"] != "PodScheduled");
    conditions.push(json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
        "lastTransitionTime": clock::seconds(shared.clock.now()),
    }));
    let mut pod = pod.clone();
    pod["status"]["conditions"] = conditions.into();
    store.put("pods", pod);
}

#[cfg(test)]
mod tests;

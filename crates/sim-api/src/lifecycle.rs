//! The node lifecycle controllers: taints that follow the conditions, conditions that become unknown
//! when the lease expires, and deletion of pods whose node is deleted.

mod pod_gc;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::pod_gc::PodGc;
use crate::{clock, meta, state::ServerState, store::Store, strategy::NOT_READY};

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Taints for conditions of pressure.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    (
        "NetworkUnavailable",
        "node.kubernetes.io/network-unavailable",
    ),
];

/// A node is unreachable if its lease was not renewed for this time.
const MONITOR_GRACE_PERIOD: SignedDuration = SignedDuration::from_secs(50);

/// Time between two checks of the leases.
const MONITOR_PERIOD: Duration = Duration::from_secs(5);

/// The leases by node: the time in each, and when that was first seen. As in the node controller,
/// only changes of that time count, because the node's clock may be wrong.
type Leases = BTreeMap<String, (Timestamp, Timestamp)>;

/// Reconciles the taints and conditions of all nodes: when a node changes, and periodically.
pub(crate) async fn run(shared: Arc<ServerState>) {
    let mut changes = shared.changes();
    let mut pod_gc = PodGc::default();
    let mut leases = Leases::new();
    let mut position = 0;
    let mut due = Instant::now();
    loop {
        changes.mark_unchanged();
        let is_on = shared.config().node_lifecycle;
        if is_on {
            let is_due = due <= Instant::now();
            shared.with_store(|store| {
                if is_due || nodes_changed_since(store, position) {
                    reconcile(store, &mut leases, shared.clock.now());
                }
                if is_due {
                    pod_gc.reconcile(&shared, store);
                }
                position = store.version();
            });
            if is_due {
                due = Instant::now() + MONITOR_PERIOD;
            }
        }
        let period = async {
            if is_on {
                tokio::time::sleep_until(due).await;
            } else {
                std::future::pending::<()>().await;
            }
        };
        // Cancel safety: the next round checks everything again.
        tokio::select! {
            () = period => {}
            changed = changes.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

/// Whether a node has changed since then.
fn nodes_changed_since(store: &Store, position: u64) -> bool {
    let Ok(mut changes) = store.since(position) else {
        return true;
    };
    changes.any(|change| change.storage == "nodes")
}

fn reconcile(store: &mut Store, leases: &mut Leases, now: Timestamp) {
    for node in store.list("nodes", None) {
        let name = meta::name(&node);
        let lease = store.get("leases", "kube-node-lease", name);
        let renewed = lease.and_then(|lease| meta::text(lease, "/spec/renewTime").parse().ok());
        let renewed: Option<Timestamp> = match renewed {
            None => meta::text(&node, "/metadata/creationTimestamp")
                .parse()
                .ok(),
            Some(renewed) => match leases.get(name) {
                Some((known, seen)) if *known >= renewed => Some(*seen),
                _ => {
                    leases.insert(name.to_owned(), (renewed, now));
                    Some(now)
                }
            },
        };
        let is_lost =
            renewed.is_some_and(|renewed| now.duration_since(renewed) > MONITOR_GRACE_PERIOD);
        let mut wanted = Value::clone(&node);
        if is_lost {
            mark_unknown(&mut wanted, now);
        }
        taint(&mut wanted, now);
        if wanted != *node {
            store.put("nodes", wanted);
        }
    }
}

/// Sets the conditions of an unreachable node to unknown.
fn mark_unknown(node: &mut Value, now: Timestamp) {
    let conditions = node.pointer_mut("/status/conditions");
    for condition in conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if condition["status"] != "Unknown" {
            condition["status"] = "Unknown".into();
            condition["reason"] = "NodeStatusUnknown".into();
            condition["message"] = "Kubelet stopped posting node status.".into();
            condition["lastTransitionTime"] = clock::seconds(now).into();
        }
    }
}

fn taint(node: &mut Value, now: Timestamp) {
    let status = |kind: &str| {
        let mut conditions = meta::entries(node, "/status/conditions").iter();
        let found = conditions.find(|condition| condition["type"] == kind);
        found.map(|found| meta::text(found, "/status").to_owned())
    };
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    match status("Ready").as_deref() {
        Some("True") => {}
        Some("Unknown") => {
            wanted.extend([(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]);
        }
        Some(_) => wanted.extend([(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]),
        None => wanted.push((NOT_READY, "NoSchedule")),
    }
    for (condition, key) in PRESSURES {
        if status(condition).as_deref() == Some("True") {
            wanted.push((key, "NoSchedule"));
        }
    }
    if meta::flag(node, "/spec/unschedulable") {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    let is_ours = |key: &str| {
        [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&key)
            || PRESSURES.iter().any(|(_, taint)| *taint == key)
    };
    let mut taints = meta::entries(node, "/spec/taints").to_vec();
    taints.retain(|taint| {
        let (key, effect) = (meta::text(taint, "/key"), meta::text(taint, "/effect"));
        !is_ours(key) || wanted.contains(&(key, effect))
    });
    for (key, effect) in wanted {
        if !taints
            .iter()
            .any(|taint| taint["key"] == key && taint["effect"] == effect)
        {
            taints.push(json!({ "key": key, "effect": effect, "timeAdded": clock::seconds(now) }));
        }
    }
    if taints.is_empty() {
        meta::fields(node, "spec").remove("taints");
    } else {
        node["spec"]["taints"] = taints.into();
    }
}

#[cfg(test)]
mod tests;

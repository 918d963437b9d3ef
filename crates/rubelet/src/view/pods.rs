//! Pods as v1 Pods.

use std::{net::IpAddr, sync::Arc};

use rubelet_api::wire::{WireContext, pod_json};
use rubelet_kubelet::pod_task::PodEntry;
use rubelet_server::Object;

/// A pod, drawn when somebody asks for it.
pub(super) fn object(entry: Arc<PodEntry>, node_ips: Arc<[IpAddr]>) -> Object {
    let name = entry.pod.name.clone();
    Object::new(&name.namespace, &name.name, move || {
        let context = WireContext {
            host_ips: &node_ips,
            deletion_timestamp: entry
                .deletion
                .map(|(since, grace)| since.checked_add(grace).unwrap_or(jiff::Timestamp::MAX)),
            deletion_grace: entry.deletion.map(|(_, grace)| grace),
        };
        pod_json(&entry.pod, Some(&entry.status), &context)
    })
}

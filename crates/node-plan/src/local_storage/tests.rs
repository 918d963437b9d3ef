//! Tests of `local_storage`.

mod limits;
mod schedule;

use rubelet_api::{
    pod::{Pod, PodSource, RestartPolicy},
    resources::{Bytes, ResourceAmounts},
    volume::{Medium, Volume, VolumeSource},
};
use serde_json::json;

use super::*;
use crate::{
    eviction::{ContainerUsage, DiskUsage, FileSystemLayout, PodUsage, VolumeUsage},
    test_pods::{container, pod},
};

const MIB: u64 = 1 << 20;

/// A pod of the API server whose containers have these limits of local storage, as text and bytes.
fn limited(containers: &[(&str, Option<(&str, Bytes)>)]) -> Pod {
    let mut pod = pod();
    pod.source = PodSource::Api;
    pod.spec.containers.clear();
    let mut list = Vec::new();
    for (name, limit) in containers {
        let amounts = ResourceAmounts {
            ephemeral_storage: limit.map(|(_, bytes)| bytes),
            ..ResourceAmounts::default()
        };
        pod.spec
            .containers
            .push(container(name, ResourceAmounts::default(), amounts));
        list.push(match limit {
            Some((text, _)) => json!({
                "name": name,
                "resources": { "limits": { "ephemeral-storage": text } },
            }),
            None => json!({ "name": name }),
        });
    }
    pod.json = json!({ "spec": { "containers": list } }).to_string().into();
    pod
}

/// The same with an `emptyDir` of this size.
fn with_volume(mut pod: Pod, medium: Medium, text: &str, bytes: Bytes) -> Pod {
    pod.spec.volumes.push(Volume {
        name: "data".into(),
        source: VolumeSource::EmptyDir {
            medium,
            size_limit: Some(bytes),
        },
    });
    let mut json: serde_json::Value = serde_json::from_str(&pod.json).unwrap();
    json["spec"]["volumes"] = json!([{ "name": "data", "emptyDir": { "sizeLimit": text } }]);
    pod.json = json.to_string().into();
    pod
}

fn disk(bytes: Bytes) -> DiskUsage {
    DiskUsage { bytes, inodes: 1 }
}

/// The usage of a pod: the writable layer and the logs of each container, and the volume.
fn usage(containers: &[(&str, Bytes, Bytes)], volume: Bytes) -> PodUsage {
    let containers = containers
        .iter()
        .map(|&(name, layer, logs)| ContainerUsage {
            name: name.into(),
            memory: None,
            writable_layer: Some(disk(layer)),
            logs: Some(disk(logs)),
        });
    PodUsage {
        containers: containers.collect(),
        volumes: vec![VolumeUsage {
            name: "data".into(),
            usage: disk(volume),
        }],
        ..PodUsage::default()
    }
}

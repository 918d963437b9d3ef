//! The object for the registration of a node, and the corrections of an existing one.

use rubelet_api::resource_name::{hugepages_name, is_hugepages};

use super::{
    NodeFacts, NodeSettings,
    object::{Node, NodeMeta, NodeSpec, NodeTaint, Texts},
    resources::is_extended,
};

/// Label: name of the node as a host.
pub(crate) const LABEL_HOSTNAME: &str = "kubernetes.io/hostname";
/// Label: operating system.
pub(crate) const LABEL_OS: &str = "kubernetes.io/os";
/// Label: architecture.
pub(crate) const LABEL_ARCH: &str = "kubernetes.io/arch";
const LABEL_OS_BETA: &str = "beta.kubernetes.io/os";
const LABEL_ARCH_BETA: &str = "beta.kubernetes.io/arch";

/// Labels that the agent sets again on an existing node when it starts. It does not change others.
const OWN_LABELS: [&str; 11] = [
    LABEL_HOSTNAME,
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    LABEL_OS,
    LABEL_ARCH,
    LABEL_OS_BETA,
    LABEL_ARCH_BETA,
];

/// Annotation: volumes of this node are attached by the cluster's controller.
const ATTACH_DETACH: &str = "volumes.kubernetes.io/controller-managed-attach-detach";
/// Taint of a node that the cloud controller manager has not initialized yet.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// The object to create, without a status.
#[must_use]
pub fn initial(settings: &NodeSettings, facts: &NodeFacts) -> Node {
    let mut labels = Texts::from([
        (LABEL_HOSTNAME.into(), settings.name.clone()),
        (LABEL_OS.into(), facts.os.clone()),
        (LABEL_ARCH.into(), facts.architecture.clone()),
        (LABEL_OS_BETA.into(), facts.os.clone()),
        (LABEL_ARCH_BETA.into(), facts.architecture.clone()),
    ]);
    labels.extend(settings.labels.clone());
    let mut taints = settings.taints.clone();
    if settings.external_cloud {
        taints.push(NodeTaint {
            key: UNINITIALIZED.into(),
            value: "true".into(),
            effect: "NoSchedule".into(),
        });
    }
    let mut annotations = Texts::new();
    if settings.controller_attach_detach {
        annotations.insert(ATTACH_DETACH.into(), "true".into());
    }
    Node {
        metadata: NodeMeta {
            name: settings.name.clone(),
            labels,
            annotations,
            ..NodeMeta::default()
        },
        spec: NodeSpec {
            provider_id: settings.provider_id.clone(),
            taints,
            ..NodeSpec::default()
        },
        ..Node::default()
    }
}

/// Corrects a node that existed before the agent started: its own labels, the annotation about
/// volumes, huge pages of sizes that no longer exist, and devices, which this agent does not offer.
pub fn correct(settings: &NodeSettings, facts: &NodeFacts, node: &mut Node) {
    let fresh = initial(settings, facts);
    for name in OWN_LABELS {
        match fresh.metadata.labels.get(name) {
            Some(value) if value.is_empty() => drop(node.metadata.labels.remove(name)),
            Some(value) => drop(node.metadata.labels.insert(name.into(), value.clone())),
            None => {}
        }
    }
    match fresh.metadata.annotations.get(ATTACH_DETACH) {
        Some(value) => {
            let annotations = &mut node.metadata.annotations;
            annotations.insert(ATTACH_DETACH.into(), value.clone());
        }
        None => drop(node.metadata.annotations.remove(ATTACH_DETACH)),
    }
    let sizes: Vec<Box<str>> = facts
        .hugepages
        .keys()
        .map(|size| hugepages_name(*size))
        .collect();
    let status = &mut node.status;
    for list in [&mut status.capacity, &mut status.allocatable] {
        list.retain(|name, _| !is_hugepages(name) || sizes.contains(name));
        for (name, amount) in list.iter_mut() {
            if is_extended(name) && **amount != *"0" {
                *amount = "0".into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> NodeFacts {
        NodeFacts {
            os: "linux".into(),
            architecture: "amd64".into(),
            hugepages: [(2 << 20, 0)].into(),
            ..NodeFacts::default()
        }
    }

    fn texts(pairs: &[(&str, &str)]) -> Texts {
        pairs
            .iter()
            .map(|&(key, value)| (key.into(), value.into()))
            .collect()
    }

    #[test]
    fn a_node_is_born_with_labels_taints_and_annotations() {
        let settings = NodeSettings {
            labels: texts(&[("role", "web"), ("kubernetes.io/os", "other")]),
            taints: vec![NodeTaint {
                key: "dedicated".into(),
                value: "".into(),
                effect: "NoExecute".into(),
            }],
            provider_id: "kind://a".into(),
            external_cloud: true,
            ..NodeSettings::new("n1")
        };
        let node = initial(&settings, &facts()).to_json();
        assert_eq!(
            node["metadata"],
            serde_json::json!({
                "name": "n1",
                "labels": {
                    "beta.kubernetes.io/arch": "amd64",
                    "beta.kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    "kubernetes.io/hostname": "n1",
                    "kubernetes.io/os": "other",
                    "role": "web",
                },
                "annotations": {
                    "volumes.kubernetes.io/controller-managed-attach-detach": "true",
                },
            })
        );
        assert_eq!(
            node["spec"],
            serde_json::json!({
                "providerID": "kind://a",
                "taints": [
                    { "key": "dedicated", "effect": "NoExecute" },
                    {
                        "key": "node.cloudprovider.kubernetes.io/uninitialized",
                        "value": "true",
                        "effect": "NoSchedule",
                    },
                ],
            })
        );
    }

    #[test]
    fn what_is_the_kubelets_is_corrected_and_all_else_is_left_alone() {
        let settings = NodeSettings {
            labels: texts(&[("role", "web"), ("topology.kubernetes.io/zone", "")]),
            controller_attach_detach: false,
            ..NodeSettings::new("n1")
        };
        let mut node = Node::default();
        node.metadata.labels = texts(&[
            ("kubernetes.io/hostname", "old"),
            ("topology.kubernetes.io/zone", "a"),
            ("role", "db"),
            ("x", "y"),
        ]);
        node.metadata.annotations = texts(&[(ATTACH_DETACH, "true"), ("x", "y")]);
        node.spec.taints = vec![NodeTaint::default()];
        node.status.capacity = texts(&[
            ("hugepages-2Mi", "0"),
            ("hugepages-1Gi", "1Gi"),
            ("example.com/gpu", "4"),
            ("cpu", "2"),
        ]);
        node.status.allocatable = node.status.capacity.clone();
        correct(&settings, &facts(), &mut node);
        let labels = texts(&[
            ("beta.kubernetes.io/arch", "amd64"),
            ("beta.kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/hostname", "n1"),
            ("kubernetes.io/os", "linux"),
            ("role", "db"),
            ("x", "y"),
        ]);
        assert_eq!(node.metadata.labels, labels);
        assert_eq!(node.metadata.annotations, texts(&[("x", "y")]));
        assert_eq!(node.spec.taints.len(), 1);
        let amounts = texts(&[
            ("hugepages-2Mi", "0"),
            ("example.com/gpu", "0"),
            ("cpu", "2"),
        ]);
        assert_eq!(node.status.capacity, amounts);
        assert_eq!(node.status.allocatable, amounts);
    }
}

//! Annotations and labels that the kubelet reads or writes.
//!
//! Source: `pkg/kubelet/types`, `pkg/kubelet/kuberuntime/labels.go`, `pkg/kubelet/nodestatus`,
//! `kubelet_node_status.go` and `pkg/kubelet/kubelet_resources.go` of Kubernetes 1.36.

use super::row::{ParityRow, better, differs, not_yet, same};

/// Names, with whose they are.
pub const ANNOTATIONS: &[ParityRow] = &[
    same("pod: kubernetes.io/config.source"),
    same("pod: kubernetes.io/config.hash"),
    same("pod: kubernetes.io/config.seen"),
    same("pod: kubernetes.io/config.mirror"),
    better(
        "pod: container.apparmor.security.beta.kubernetes.io/",
        "what it asks for is refused or done, never dropped",
    ),
    same("pod: kubernetes.io/ingress-bandwidth, kubernetes.io/egress-bandwidth"),
    same("container: io.kubernetes.container.name, pod.name, pod.namespace, pod.uid"),
    same("container: io.kubernetes.container.hash, restartCount"),
    same("container: io.kubernetes.container.terminationMessagePath, terminationMessagePolicy"),
    same("container: io.kubernetes.container.preStopHandler, ports"),
    same("container: io.kubernetes.pod.deletionGracePeriod, terminationGracePeriod"),
    same("node label: kubernetes.io/hostname, os, arch and their beta names"),
    same("node label: node.kubernetes.io/instance-type, topology.kubernetes.io/zone and region"),
    same("node: volumes.kubernetes.io/controller-managed-attach-detach"),
    same("node: alpha.kubernetes.io/provided-node-ip"),
    same("node: node.alpha.kubernetes.io/ttl"),
    not_yet("node: csi.volume.kubernetes.io/nodeid", "no CSI drivers"),
    not_yet(
        "CSINode: storage.alpha.kubernetes.io/migrated-plugins",
        "no CSI drivers",
    ),
    differs(
        "node: volumes.kubernetes.io/keep-terminated-pod-volumes",
        "it goes with a flag that the kubelet has dropped",
    ),
    same("node taint: node.cloudprovider.kubernetes.io/uninitialized"),
];

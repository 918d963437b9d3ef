//! How each field of a pod compares with the kubelet of Kubernetes 1.36.

use super::{Row, Support};
use rubelet_base::parity::ParityVerdict::{self, Better, Differs, NotYet, Same};

/// Why a refusal of a field that Kubernetes 1.36 does not have is not a gap.
const NEWER: &str = "Kubernetes 1.36 has no such field and drops it in silence";
/// The same for fields behind gates that are off.
const OFF: &str = "off by default in Kubernetes 1.36, whose API server drops it in silence";

/// Rows whose verdict does not follow from their support.
const EXCEPTIONS: &[(&str, ParityVerdict, &str)] = &[
    ("apiVersion", Same, ""),
    ("kind", Same, ""),
    (
        "spec.containers[].env[].valueFrom.fieldRef.apiVersion",
        Same,
        "",
    ),
    (
        "spec.containers[].lifecycle.postStart.httpGet.protocol",
        Differs,
        NEWER,
    ),
    (
        "spec.containers[].lifecycle.postStart.tcpSocket.host",
        Same,
        "",
    ),
    (
        "spec.containers[].lifecycle.postStart.tcpSocket.port",
        Same,
        "",
    ),
    (
        "spec.containers[].lifecycle.preStop.httpGet.protocol",
        Differs,
        NEWER,
    ),
    (
        "spec.containers[].lifecycle.preStop.tcpSocket.host",
        Same,
        "",
    ),
    (
        "spec.containers[].lifecycle.preStop.tcpSocket.port",
        Same,
        "",
    ),
    ("spec.containers[].lifecycle.stopSignal", Differs, OFF),
    ("spec.containers[].livenessProbe.grpc.mode", Differs, NEWER),
    (
        "spec.containers[].livenessProbe.httpGet.protocol",
        Differs,
        NEWER,
    ),
    ("spec.containers[].readinessProbe.grpc.mode", Differs, NEWER),
    (
        "spec.containers[].readinessProbe.httpGet.protocol",
        Differs,
        NEWER,
    ),
    (
        "spec.containers[].readinessProbe.terminationGracePeriodSeconds",
        Same,
        "",
    ),
    ("spec.containers[].startupProbe.grpc.mode", Differs, NEWER),
    (
        "spec.containers[].startupProbe.httpGet.protocol",
        Differs,
        NEWER,
    ),
    (
        "spec.containers[].volumeMounts[].bindMountOptions[]",
        Differs,
        NEWER,
    ),
    ("spec.evictionResponders[]", Differs, NEWER),
    (
        "spec.nodeSelector{}",
        Differs,
        "a kubelet without a cluster ignores it; a label that nothing gives the node is a mistake",
    ),
    ("spec.os.name", Same, ""),
    (
        "spec.priorityClassName",
        Better,
        "a kubelet takes any other name for the priority 0 without a word",
    ),
    ("spec.tolerations[]", Same, ""),
    (
        "spec.volumes[].awsElasticBlockStore",
        NotYet,
        "the kubelet hands it to a CSI driver",
    ),
    (
        "spec.volumes[].azureDisk",
        NotYet,
        "the kubelet hands it to a CSI driver",
    ),
    ("spec.volumes[].cephfs", Same, ""),
    (
        "spec.volumes[].cinder",
        NotYet,
        "the kubelet hands it to a CSI driver",
    ),
    ("spec.volumes[].downwardAPI.defaultUser", Differs, NEWER),
    (
        "spec.volumes[].downwardAPI.items[].fieldRef.apiVersion",
        Same,
        "",
    ),
    ("spec.volumes[].downwardAPI.items[].user", Differs, NEWER),
    ("spec.volumes[].emptyDir.mode", Differs, NEWER),
    (
        "spec.volumes[].flexVolume",
        NotYet,
        "the kubelet still runs such drivers",
    ),
    ("spec.volumes[].flocker", Same, ""),
    (
        "spec.volumes[].gcePersistentDisk",
        NotYet,
        "the kubelet hands it to a CSI driver",
    ),
    ("spec.volumes[].gitRepo", Same, ""),
    ("spec.volumes[].glusterfs", Same, ""),
    (
        "spec.volumes[].hostPath.path",
        Better,
        "a relative path is refused, where a kubelet resolves it by its own directory",
    ),
    ("spec.volumes[].photonPersistentDisk", Same, ""),
    (
        "spec.volumes[].portworxVolume",
        NotYet,
        "the kubelet hands it to a CSI driver",
    ),
    ("spec.volumes[].projected.defaultUser", Differs, NEWER),
    (
        "spec.volumes[].projected.sources[].clusterTrustBundle",
        Differs,
        OFF,
    ),
    (
        "spec.volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion",
        Same,
        "",
    ),
    (
        "spec.volumes[].projected.sources[].downwardAPI.items[].user",
        Differs,
        NEWER,
    ),
    (
        "spec.volumes[].projected.sources[].podCertificate",
        Differs,
        OFF,
    ),
    ("spec.volumes[].quobyte", Same, ""),
    ("spec.volumes[].rbd", Same, ""),
    ("spec.volumes[].scaleIO", Same, ""),
    ("spec.volumes[].storageos", Same, ""),
    (
        "spec.volumes[].vsphereVolume",
        NotYet,
        "the kubelet hands it to a CSI driver",
    ),
];

/// The rows that have an exception, for the test that each of them exists.
#[cfg(test)]
pub(super) fn exceptions() -> impl Iterator<Item = &'static str> {
    EXCEPTIONS.iter().map(|(path, ..)| *path)
}

impl Row {
    /// How the field compares, and why where the remark does not say it.
    #[must_use]
    pub fn verdict(&self) -> (ParityVerdict, &'static str) {
        if let Some((_, verdict, why)) = EXCEPTIONS.iter().find(|(path, ..)| *path == self.path) {
            return (*verdict, why);
        }
        let verdict = match self.support {
            Support::Full | Support::NoEffect(_) | Support::ApiEffect(_) => Same,
            // A kubelet of a cluster refuses them too (PreventStaticPodAPIReferences).
            Support::ApiObject(_) => Same,
            Support::ApiOnly(_) | Support::Never(_) => Differs,
            Support::Partial(_) | Support::NotYet(_) | Support::ApiObjectNotYet(_) => NotYet,
        };
        (verdict, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{row, rows};

    #[test]
    fn what_is_not_yet_here_is_refused_by_name() {
        for row in rows() {
            let refuses = row.support.is_refused() || matches!(row.support, Support::Partial(_));
            assert!(row.verdict().0 != NotYet || refuses, "{}", row.path);
        }
    }

    #[test]
    fn exceptions_are_rows_in_their_order() {
        let paths: Vec<&str> = exceptions().collect();
        assert!(paths.is_sorted());
        for path in paths {
            assert!(row(path).is_some(), "{path}");
        }
    }

    #[test]
    fn what_differs_says_why() {
        for row in rows() {
            let (verdict, why) = row.verdict();
            let remark = !matches!(row.support, Support::Full);
            assert!(verdict == Same || remark || !why.is_empty(), "{}", row.path);
        }
    }
}

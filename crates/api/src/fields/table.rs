//! The rows of the support matrix, sorted by path.

use super::{
    Row,
    Support::{
        self, ApiEffect, ApiObject, ApiObjectNotYet, ApiOnly, Full, Never, NoEffect, NotYet,
        Partial,
    },
};

const fn row(path: &'static str, support: Support) -> Row {
    Row { path, support }
}

/// What becomes of a `tcpSocket` hook.
const FAILING_HOOK: &str = "accepted as by the API server; the hook fails when it is to run";

/// What becomes of the users of files in volumes.
const FILE_OWNER: &str = "the feature AtomicWriteVolumeUserFields is alpha";

pub(super) const ROWS: &[Row] = &[
    row("apiVersion", Partial("v1")),
    row("kind", Partial("Pod")),
    row("metadata.annotations{}", Full),
    row("metadata.creationTimestamp", NoEffect("set by Rubelet")),
    row(
        "metadata.deletionGracePeriodSeconds",
        ApiEffect("set by Rubelet"),
    ),
    row(
        "metadata.deletionTimestamp",
        ApiOnly("delete the manifest to stop its pod"),
    ),
    row(
        "metadata.finalizers[]",
        NoEffect("a pod of a manifest goes when the manifest goes"),
    ),
    row(
        "metadata.generateName",
        NoEffect("metadata.name is needed and used"),
    ),
    row("metadata.generation", ApiEffect("counted by Rubelet")),
    row("metadata.labels{}", Full),
    row(
        "metadata.managedFields[]",
        NoEffect("kept by the API server"),
    ),
    row("metadata.name", Full),
    row("metadata.namespace", Full),
    row(
        "metadata.ownerReferences[]",
        NoEffect("nothing owns a pod of a manifest"),
    ),
    row(
        "metadata.resourceVersion",
        NoEffect("kept by the API server"),
    ),
    row("metadata.selfLink", NoEffect("kept by old API servers")),
    row("metadata.uid", Full),
    row("spec.activeDeadlineSeconds", Full),
    row(
        "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[]",
        NoEffect("a static pod is never scheduled"),
    ),
    row(
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        ApiOnly("use nodeSelector, or leave the manifest away from nodes where it should not run"),
    ),
    row(
        "spec.affinity.podAffinity",
        NoEffect("a static pod is never scheduled"),
    ),
    row(
        "spec.affinity.podAntiAffinity",
        NoEffect("a static pod is never scheduled"),
    ),
    row(
        "spec.automountServiceAccountToken",
        NoEffect("a static pod has no service account"),
    ),
    row("spec.containers[].args[]", Full),
    row("spec.containers[].command[]", Full),
    row(
        "spec.containers[].envFrom[]",
        ApiObject("config maps and secrets"),
    ),
    row("spec.containers[].env[].name", Full),
    row("spec.containers[].env[].value", Full),
    row(
        "spec.containers[].env[].valueFrom.configMapKeyRef",
        ApiObject("config maps"),
    ),
    row(
        "spec.containers[].env[].valueFrom.fieldRef.apiVersion",
        Partial("v1"),
    ),
    row("spec.containers[].env[].valueFrom.fieldRef.fieldPath", Full),
    row("spec.containers[].env[].valueFrom.fileKeyRef.key", Full),
    row(
        "spec.containers[].env[].valueFrom.fileKeyRef.optional",
        Full,
    ),
    row("spec.containers[].env[].valueFrom.fileKeyRef.path", Full),
    row(
        "spec.containers[].env[].valueFrom.fileKeyRef.volumeName",
        Full,
    ),
    row(
        "spec.containers[].env[].valueFrom.resourceFieldRef.containerName",
        Full,
    ),
    row(
        "spec.containers[].env[].valueFrom.resourceFieldRef.divisor",
        Full,
    ),
    row(
        "spec.containers[].env[].valueFrom.resourceFieldRef.resource",
        Partial("limits and requests of cpu and memory"),
    ),
    row(
        "spec.containers[].env[].valueFrom.secretKeyRef",
        ApiObject("secrets"),
    ),
    row("spec.containers[].image", Full),
    row("spec.containers[].imagePullPolicy", Full),
    row("spec.containers[].lifecycle.postStart.exec.command[]", Full),
    row("spec.containers[].lifecycle.postStart.httpGet.host", Full),
    row(
        "spec.containers[].lifecycle.postStart.httpGet.httpHeaders[].name",
        Full,
    ),
    row(
        "spec.containers[].lifecycle.postStart.httpGet.httpHeaders[].value",
        Full,
    ),
    row("spec.containers[].lifecycle.postStart.httpGet.path", Full),
    row("spec.containers[].lifecycle.postStart.httpGet.port", Full),
    row(
        "spec.containers[].lifecycle.postStart.httpGet.protocol",
        NotYet("probes and hooks speak HTTP/1.1"),
    ),
    row("spec.containers[].lifecycle.postStart.httpGet.scheme", Full),
    row("spec.containers[].lifecycle.postStart.sleep.seconds", Full),
    row(
        "spec.containers[].lifecycle.postStart.tcpSocket.host",
        Partial(FAILING_HOOK),
    ),
    row(
        "spec.containers[].lifecycle.postStart.tcpSocket.port",
        Partial(FAILING_HOOK),
    ),
    row("spec.containers[].lifecycle.preStop.exec.command[]", Full),
    row("spec.containers[].lifecycle.preStop.httpGet.host", Full),
    row(
        "spec.containers[].lifecycle.preStop.httpGet.httpHeaders[].name",
        Full,
    ),
    row(
        "spec.containers[].lifecycle.preStop.httpGet.httpHeaders[].value",
        Full,
    ),
    row("spec.containers[].lifecycle.preStop.httpGet.path", Full),
    row("spec.containers[].lifecycle.preStop.httpGet.port", Full),
    row(
        "spec.containers[].lifecycle.preStop.httpGet.protocol",
        NotYet("probes and hooks speak HTTP/1.1"),
    ),
    row("spec.containers[].lifecycle.preStop.httpGet.scheme", Full),
    row("spec.containers[].lifecycle.preStop.sleep.seconds", Full),
    row(
        "spec.containers[].lifecycle.preStop.tcpSocket.host",
        Partial(FAILING_HOOK),
    ),
    row(
        "spec.containers[].lifecycle.preStop.tcpSocket.port",
        Partial(FAILING_HOOK),
    ),
    row(
        "spec.containers[].lifecycle.stopSignal",
        NotYet("the feature ContainerStopSignals is alpha; set STOPSIGNAL in the image"),
    ),
    row("spec.containers[].livenessProbe.exec.command[]", Full),
    row("spec.containers[].livenessProbe.failureThreshold", Full),
    row(
        "spec.containers[].livenessProbe.grpc.mode",
        Partial("Plaintext"),
    ),
    row("spec.containers[].livenessProbe.grpc.port", Full),
    row("spec.containers[].livenessProbe.grpc.service", Full),
    row("spec.containers[].livenessProbe.httpGet.host", Full),
    row(
        "spec.containers[].livenessProbe.httpGet.httpHeaders[].name",
        Full,
    ),
    row(
        "spec.containers[].livenessProbe.httpGet.httpHeaders[].value",
        Full,
    ),
    row("spec.containers[].livenessProbe.httpGet.path", Full),
    row("spec.containers[].livenessProbe.httpGet.port", Full),
    row(
        "spec.containers[].livenessProbe.httpGet.protocol",
        NotYet("probes and hooks speak HTTP/1.1"),
    ),
    row("spec.containers[].livenessProbe.httpGet.scheme", Full),
    row("spec.containers[].livenessProbe.initialDelaySeconds", Full),
    row("spec.containers[].livenessProbe.periodSeconds", Full),
    row("spec.containers[].livenessProbe.successThreshold", Full),
    row("spec.containers[].livenessProbe.tcpSocket.host", Full),
    row("spec.containers[].livenessProbe.tcpSocket.port", Full),
    row(
        "spec.containers[].livenessProbe.terminationGracePeriodSeconds",
        Full,
    ),
    row("spec.containers[].livenessProbe.timeoutSeconds", Full),
    row("spec.containers[].name", Full),
    row("spec.containers[].ports[].containerPort", Full),
    row("spec.containers[].ports[].hostIP", Full),
    row("spec.containers[].ports[].hostPort", Full),
    row("spec.containers[].ports[].name", Full),
    row("spec.containers[].ports[].protocol", Full),
    row("spec.containers[].readinessProbe.exec.command[]", Full),
    row("spec.containers[].readinessProbe.failureThreshold", Full),
    row(
        "spec.containers[].readinessProbe.grpc.mode",
        Partial("Plaintext"),
    ),
    row("spec.containers[].readinessProbe.grpc.port", Full),
    row("spec.containers[].readinessProbe.grpc.service", Full),
    row("spec.containers[].readinessProbe.httpGet.host", Full),
    row(
        "spec.containers[].readinessProbe.httpGet.httpHeaders[].name",
        Full,
    ),
    row(
        "spec.containers[].readinessProbe.httpGet.httpHeaders[].value",
        Full,
    ),
    row("spec.containers[].readinessProbe.httpGet.path", Full),
    row("spec.containers[].readinessProbe.httpGet.port", Full),
    row(
        "spec.containers[].readinessProbe.httpGet.protocol",
        NotYet("probes and hooks speak HTTP/1.1"),
    ),
    row("spec.containers[].readinessProbe.httpGet.scheme", Full),
    row("spec.containers[].readinessProbe.initialDelaySeconds", Full),
    row("spec.containers[].readinessProbe.periodSeconds", Full),
    row("spec.containers[].readinessProbe.successThreshold", Full),
    row("spec.containers[].readinessProbe.tcpSocket.host", Full),
    row("spec.containers[].readinessProbe.tcpSocket.port", Full),
    row(
        "spec.containers[].readinessProbe.terminationGracePeriodSeconds",
        Never("a readiness probe ends no container"),
    ),
    row("spec.containers[].readinessProbe.timeoutSeconds", Full),
    row(
        "spec.containers[].resizePolicy[]",
        NoEffect("static pods are not resized in place; a change restarts the container"),
    ),
    row(
        "spec.containers[].resources.claims[]",
        ApiObjectNotYet("resource claims"),
    ),
    row(
        "spec.containers[].resources.limits{}",
        Partial("cpu, memory and hugepages-SIZE"),
    ),
    row(
        "spec.containers[].resources.requests{}",
        Partial("cpu, memory, ephemeral-storage and hugepages-SIZE"),
    ),
    row("spec.containers[].restartPolicy", Full),
    row("spec.containers[].restartPolicyRules[].action", Full),
    row(
        "spec.containers[].restartPolicyRules[].exitCodes.operator",
        Full,
    ),
    row(
        "spec.containers[].restartPolicyRules[].exitCodes.values[]",
        Full,
    ),
    row(
        "spec.containers[].securityContext.allowPrivilegeEscalation",
        Full,
    ),
    row(
        "spec.containers[].securityContext.appArmorProfile.localhostProfile",
        Full,
    ),
    row(
        "spec.containers[].securityContext.appArmorProfile.type",
        Full,
    ),
    row("spec.containers[].securityContext.capabilities.add[]", Full),
    row(
        "spec.containers[].securityContext.capabilities.drop[]",
        Full,
    ),
    row("spec.containers[].securityContext.privileged", Full),
    row("spec.containers[].securityContext.procMount", Full),
    row(
        "spec.containers[].securityContext.readOnlyRootFilesystem",
        Full,
    ),
    row("spec.containers[].securityContext.runAsGroup", Full),
    row("spec.containers[].securityContext.runAsNonRoot", Full),
    row("spec.containers[].securityContext.runAsUser", Full),
    row(
        "spec.containers[].securityContext.seLinuxOptions.level",
        Full,
    ),
    row(
        "spec.containers[].securityContext.seLinuxOptions.role",
        Full,
    ),
    row(
        "spec.containers[].securityContext.seLinuxOptions.type",
        Full,
    ),
    row(
        "spec.containers[].securityContext.seLinuxOptions.user",
        Full,
    ),
    row(
        "spec.containers[].securityContext.seccompProfile.localhostProfile",
        Full,
    ),
    row(
        "spec.containers[].securityContext.seccompProfile.type",
        Full,
    ),
    row(
        "spec.containers[].securityContext.windowsOptions",
        ApiOnly("this node runs linux"),
    ),
    row("spec.containers[].startupProbe.exec.command[]", Full),
    row("spec.containers[].startupProbe.failureThreshold", Full),
    row(
        "spec.containers[].startupProbe.grpc.mode",
        Partial("Plaintext"),
    ),
    row("spec.containers[].startupProbe.grpc.port", Full),
    row("spec.containers[].startupProbe.grpc.service", Full),
    row("spec.containers[].startupProbe.httpGet.host", Full),
    row(
        "spec.containers[].startupProbe.httpGet.httpHeaders[].name",
        Full,
    ),
    row(
        "spec.containers[].startupProbe.httpGet.httpHeaders[].value",
        Full,
    ),
    row("spec.containers[].startupProbe.httpGet.path", Full),
    row("spec.containers[].startupProbe.httpGet.port", Full),
    row(
        "spec.containers[].startupProbe.httpGet.protocol",
        NotYet("probes and hooks speak HTTP/1.1"),
    ),
    row("spec.containers[].startupProbe.httpGet.scheme", Full),
    row("spec.containers[].startupProbe.initialDelaySeconds", Full),
    row("spec.containers[].startupProbe.periodSeconds", Full),
    row("spec.containers[].startupProbe.successThreshold", Full),
    row("spec.containers[].startupProbe.tcpSocket.host", Full),
    row("spec.containers[].startupProbe.tcpSocket.port", Full),
    row(
        "spec.containers[].startupProbe.terminationGracePeriodSeconds",
        Full,
    ),
    row("spec.containers[].startupProbe.timeoutSeconds", Full),
    row("spec.containers[].stdin", Full),
    row("spec.containers[].stdinOnce", Full),
    row("spec.containers[].terminationMessagePath", Full),
    row("spec.containers[].terminationMessagePolicy", Full),
    row("spec.containers[].tty", Full),
    row(
        "spec.containers[].volumeDevices[]",
        ApiObjectNotYet("persistent volume claims"),
    ),
    row(
        "spec.containers[].volumeMounts[].bindMountOptions[]",
        NotYet("mount options come with a later release"),
    ),
    row("spec.containers[].volumeMounts[].mountPath", Full),
    row("spec.containers[].volumeMounts[].mountPropagation", Full),
    row("spec.containers[].volumeMounts[].name", Full),
    row("spec.containers[].volumeMounts[].readOnly", Full),
    row("spec.containers[].volumeMounts[].recursiveReadOnly", Full),
    row("spec.containers[].volumeMounts[].subPath", Full),
    row("spec.containers[].volumeMounts[].subPathExpr", Full),
    row("spec.containers[].workingDir", Full),
    row("spec.dnsConfig.nameservers[]", Full),
    row("spec.dnsConfig.options[].name", Full),
    row("spec.dnsConfig.options[].value", Full),
    row("spec.dnsConfig.searches[]", Full),
    row("spec.dnsPolicy", Full),
    row("spec.enableServiceLinks", Full),
    row(
        "spec.ephemeralContainers[]",
        ApiOnly("ephemeral containers are added while the pod runs, with `rubelet debug`"),
    ),
    row(
        "spec.evictionResponders[]",
        ApiObjectNotYet("eviction requests"),
    ),
    row("spec.hostAliases[].hostnames[]", Full),
    row("spec.hostAliases[].ip", Full),
    row("spec.hostIPC", Full),
    row("spec.hostNetwork", Full),
    row("spec.hostPID", Full),
    row("spec.hostUsers", Full),
    row("spec.hostname", Full),
    row("spec.hostnameOverride", Full),
    row("spec.imagePullSecrets[]", ApiObject("secrets")),
    row("spec.nodeName", NoEffect("always this node")),
    row(
        "spec.nodeSelector{}",
        Partial(
            "the labels kubernetes.io/os, kubernetes.io/arch and kubernetes.io/hostname (and beta.kubernetes.io/os and arch) with the values of this node",
        ),
    ),
    row("spec.os.name", Partial("linux")),
    row("spec.overhead{}", ApiOnly("it comes with runtime classes")),
    row(
        "spec.preemptionPolicy",
        NoEffect("a static pod is never scheduled"),
    ),
    row("spec.priority", Full),
    row(
        "spec.priorityClassName",
        Partial("system-node-critical and system-cluster-critical; any other beside priority"),
    ),
    row("spec.readinessGates[].conditionType", Full),
    row("spec.resourceClaims[]", ApiObjectNotYet("resource claims")),
    row(
        "spec.resources.claims[]",
        ApiObjectNotYet("resource claims"),
    ),
    row("spec.resources.limits{}", Full),
    row("spec.resources.requests{}", Full),
    row("spec.restartPolicy", Full),
    row("spec.runtimeClassName", ApiObject("runtime classes")),
    row(
        "spec.schedulerName",
        NoEffect("a static pod is never scheduled"),
    ),
    row(
        "spec.schedulingGates[]",
        ApiOnly("a pod of a manifest is on its node from the begin"),
    ),
    row(
        "spec.schedulingGroup",
        NoEffect("a static pod is never scheduled"),
    ),
    row(
        "spec.securityContext.appArmorProfile.localhostProfile",
        Full,
    ),
    row("spec.securityContext.appArmorProfile.type", Full),
    row("spec.securityContext.fsGroup", Full),
    row("spec.securityContext.fsGroupChangePolicy", Full),
    row("spec.securityContext.runAsGroup", Full),
    row("spec.securityContext.runAsNonRoot", Full),
    row("spec.securityContext.runAsUser", Full),
    row(
        "spec.securityContext.seLinuxChangePolicy",
        NotYet("volumes are never relabelled by mount option"),
    ),
    row("spec.securityContext.seLinuxOptions.level", Full),
    row("spec.securityContext.seLinuxOptions.role", Full),
    row("spec.securityContext.seLinuxOptions.type", Full),
    row("spec.securityContext.seLinuxOptions.user", Full),
    row("spec.securityContext.seccompProfile.localhostProfile", Full),
    row("spec.securityContext.seccompProfile.type", Full),
    row("spec.securityContext.supplementalGroupsPolicy", Full),
    row("spec.securityContext.supplementalGroups[]", Full),
    row("spec.securityContext.sysctls[].name", Full),
    row("spec.securityContext.sysctls[].value", Full),
    row(
        "spec.securityContext.windowsOptions",
        ApiOnly("this node runs linux"),
    ),
    row("spec.serviceAccount", ApiObject("service accounts")),
    row("spec.serviceAccountName", ApiObject("service accounts")),
    row("spec.setHostnameAsFQDN", Full),
    row("spec.shareProcessNamespace", Full),
    row("spec.subdomain", Full),
    row("spec.terminationGracePeriodSeconds", Full),
    row(
        "spec.tolerations[]",
        ApiEffect("no taint drives a static pod from its node"),
    ),
    row(
        "spec.topologySpreadConstraints[]",
        NoEffect("a static pod is never scheduled"),
    ),
    row(
        "spec.volumes[].awsElasticBlockStore",
        Never("removed from Kubernetes"),
    ),
    row("spec.volumes[].azureDisk", Never("removed from Kubernetes")),
    row("spec.volumes[].azureFile", ApiObjectNotYet("CSI drivers")),
    row("spec.volumes[].cephfs", Never("removed from Kubernetes")),
    row("spec.volumes[].cinder", Never("removed from Kubernetes")),
    row("spec.volumes[].configMap", ApiObject("config maps")),
    row("spec.volumes[].csi", ApiObjectNotYet("CSI drivers")),
    row("spec.volumes[].downwardAPI.defaultMode", Full),
    row("spec.volumes[].downwardAPI.defaultUser", NotYet(FILE_OWNER)),
    row(
        "spec.volumes[].downwardAPI.items[].fieldRef.apiVersion",
        Partial("v1"),
    ),
    row(
        "spec.volumes[].downwardAPI.items[].fieldRef.fieldPath",
        Full,
    ),
    row("spec.volumes[].downwardAPI.items[].mode", Full),
    row("spec.volumes[].downwardAPI.items[].path", Full),
    row(
        "spec.volumes[].downwardAPI.items[].resourceFieldRef.containerName",
        Full,
    ),
    row(
        "spec.volumes[].downwardAPI.items[].resourceFieldRef.divisor",
        Full,
    ),
    row(
        "spec.volumes[].downwardAPI.items[].resourceFieldRef.resource",
        Partial("limits and requests of cpu and memory"),
    ),
    row(
        "spec.volumes[].downwardAPI.items[].user",
        NotYet(FILE_OWNER),
    ),
    row(
        "spec.volumes[].emptyDir.medium",
        Partial("the node's disk (empty) and Memory; huge pages come with a later release"),
    ),
    row(
        "spec.volumes[].emptyDir.mode",
        NotYet("an emptyDir has mode 0777"),
    ),
    row(
        "spec.volumes[].emptyDir.sizeLimit",
        Partial(
            "with the medium Memory; on disk for pods of the API server, and with `hostUsers: false` where there are project quotas",
        ),
    ),
    row(
        "spec.volumes[].ephemeral",
        ApiObjectNotYet("persistent volume claims"),
    ),
    row(
        "spec.volumes[].fc",
        NotYet("remote block devices come with a later release"),
    ),
    row(
        "spec.volumes[].flexVolume",
        Never("deprecated in Kubernetes"),
    ),
    row("spec.volumes[].flocker", Never("removed from Kubernetes")),
    row(
        "spec.volumes[].gcePersistentDisk",
        Never("removed from Kubernetes"),
    ),
    row(
        "spec.volumes[].gitRepo",
        Never("refused by Kubernetes as unsafe; clone in an init container"),
    ),
    row("spec.volumes[].glusterfs", Never("removed from Kubernetes")),
    row("spec.volumes[].hostPath.path", Partial("absolute paths")),
    row("spec.volumes[].hostPath.type", Full),
    row("spec.volumes[].image.pullPolicy", Full),
    row("spec.volumes[].image.reference", Full),
    row(
        "spec.volumes[].iscsi",
        NotYet("remote block devices come with a later release"),
    ),
    row("spec.volumes[].name", Full),
    row(
        "spec.volumes[].nfs",
        NotYet("mount it on the host and use hostPath"),
    ),
    row(
        "spec.volumes[].persistentVolumeClaim",
        ApiObjectNotYet("persistent volume claims"),
    ),
    row(
        "spec.volumes[].photonPersistentDisk",
        Never("removed from Kubernetes"),
    ),
    row(
        "spec.volumes[].portworxVolume",
        Never("removed from Kubernetes"),
    ),
    row("spec.volumes[].projected.defaultMode", Full),
    row("spec.volumes[].projected.defaultUser", NotYet(FILE_OWNER)),
    row(
        "spec.volumes[].projected.sources[].clusterTrustBundle",
        ApiObjectNotYet("cluster trust bundles"),
    ),
    row(
        "spec.volumes[].projected.sources[].configMap",
        ApiObject("config maps"),
    ),
    row(
        "spec.volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion",
        Partial("v1"),
    ),
    row(
        "spec.volumes[].projected.sources[].downwardAPI.items[].fieldRef.fieldPath",
        Full,
    ),
    row(
        "spec.volumes[].projected.sources[].downwardAPI.items[].mode",
        Full,
    ),
    row(
        "spec.volumes[].projected.sources[].downwardAPI.items[].path",
        Full,
    ),
    row(
        "spec.volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef.containerName",
        Full,
    ),
    row(
        "spec.volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef.divisor",
        Full,
    ),
    row(
        "spec.volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef.resource",
        Partial("limits and requests of cpu and memory"),
    ),
    row(
        "spec.volumes[].projected.sources[].downwardAPI.items[].user",
        NotYet(FILE_OWNER),
    ),
    row(
        "spec.volumes[].projected.sources[].podCertificate",
        ApiObjectNotYet("pod certificates"),
    ),
    row(
        "spec.volumes[].projected.sources[].secret",
        ApiObject("secrets"),
    ),
    row(
        "spec.volumes[].projected.sources[].serviceAccountToken",
        ApiObject("service accounts"),
    ),
    row("spec.volumes[].quobyte", Never("removed from Kubernetes")),
    row("spec.volumes[].rbd", Never("removed from Kubernetes")),
    row("spec.volumes[].scaleIO", Never("removed from Kubernetes")),
    row("spec.volumes[].secret", ApiObject("secrets")),
    row("spec.volumes[].storageos", Never("removed from Kubernetes")),
    row(
        "spec.volumes[].vsphereVolume",
        Never("removed from Kubernetes"),
    ),
    row(
        "status",
        NoEffect("written by Rubelet; what a manifest holds is dropped"),
    ),
];

//! What is not built, and what needs an API server, is refused by name.

use rubelet_api::fields::without_effect;
use serde_json::{Value, json};

use crate::support::{mistakes, parsed, raw, set, with};

#[track_caller]
fn check(pointer: &str, value: Value, expected: &str) {
    let pod = with(pointer, value);
    assert_eq!(mistakes(&pod.to_string()), [expected], "{pod}");
}

#[test]
fn what_is_not_built_is_refused() {
    for (pointer, value, expected) in [
        (
            "/spec/containers/0/lifecycle",
            json!({"stopSignal": "SIGINT"}),
            "spec.containers[0].lifecycle.stopSignal: Not supported yet: the feature ContainerStopSignals is alpha; set STOPSIGNAL in the image",
        ),
        (
            "/spec/containers/0/livenessProbe",
            json!({"httpGet": {"port": 80, "protocol": "HTTP2"}}),
            "spec.containers[0].livenessProbe.httpGet.protocol: Not supported yet: probes and hooks speak HTTP/1.1",
        ),
        (
            "/spec/containers/0/livenessProbe",
            json!({"grpc": {"port": 80, "mode": "TLS"}}),
            "spec.containers[0].livenessProbe.grpc.mode: Not supported yet: gRPC probes use no TLS",
        ),
        (
            "/spec/overhead",
            json!({"cpu": 1}),
            "spec.overhead: Forbidden: it comes with runtime classes",
        ),
        (
            "/spec/nodeSelector",
            json!({"disk": "ssd"}),
            "spec.nodeSelector[disk]: Not supported yet: only kubernetes.io/os, kubernetes.io/arch and kubernetes.io/hostname are known without an API server",
        ),
        (
            "/spec/affinity",
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: Forbidden: use nodeSelector, or leave the manifest away from nodes where it should not run",
        ),
        (
            "/spec/volumes",
            json!([{"name": "a", "emptyDir": {"medium": "HugePages-2Mi"}}]),
            "spec.volumes[0].emptyDir.medium: Not supported yet: huge pages as a medium come with a later release",
        ),
        (
            "/spec/volumes",
            json!([{"name": "a", "nfs": {"server": "s", "path": "/p"}}]),
            "spec.volumes[0].nfs: Not supported yet: mount it on the host and use hostPath",
        ),
        (
            "/spec/volumes",
            json!([{"name": "a", "downwardAPI": {"defaultUser": 1}}]),
            "spec.volumes[0].downwardAPI.defaultUser: Not supported yet: the feature AtomicWriteVolumeUserFields is alpha",
        ),
        (
            "/spec/containers/0/resources",
            json!({"limits": {"ephemeral-storage": "1Gi"}}),
            "spec.containers[0].resources.limits[ephemeral-storage]: Forbidden: pods of manifests are never evicted, so nothing would hold them to a limit of the disk; leave it out, or use an emptyDir with the medium Memory",
        ),
        (
            "/spec/volumes",
            json!([{"name": "a", "emptyDir": {"sizeLimit": "1Gi"}}]),
            "spec.volumes[0].emptyDir.sizeLimit: Forbidden: pods of manifests are never evicted, so nothing would hold them to a limit of the disk; leave it out, or use an emptyDir with the medium Memory",
        ),
        (
            "/spec/containers/0/resources",
            json!({"limits": {"nvidia.com/gpu": 1}}),
            "spec.containers[0].resources.limits[nvidia.com/gpu]: Not supported yet: devices and other extended resources come with a later release",
        ),
        (
            "/spec/containers/0/securityContext",
            json!({"procMount": "Unmasked"}),
            "spec.containers[0].securityContext.procMount: Invalid value: \"Unmasked\": hostUsers must be false to use Unmasked",
        ),
        (
            "/spec/containers/0/env",
            json!([{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.ephemeral-storage"}}}]),
            "spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Not supported yet: ephemeral storage comes with a later release",
        ),
    ] {
        check(pointer, value, expected);
    }
}

#[test]
fn objects_of_the_api_server_are_refused() {
    let refusal = |field: &str, what: &str| {
        format!("{field}: Forbidden: static pods cannot use objects of the API server ({what})")
    };
    for (pointer, value, field, what) in [
        (
            "/spec/serviceAccountName",
            json!("a"),
            "spec.serviceAccountName",
            "service accounts",
        ),
        (
            "/spec/imagePullSecrets",
            json!([{"name": "a"}]),
            "spec.imagePullSecrets",
            "secrets",
        ),
        (
            "/spec/runtimeClassName",
            json!("kata"),
            "spec.runtimeClassName",
            "runtime classes",
        ),
        (
            "/spec/resourceClaims",
            json!([{"name": "a"}]),
            "spec.resourceClaims",
            "resource claims",
        ),
        (
            "/spec/volumes",
            json!([{"name": "a", "secret": {"secretName": "b"}}]),
            "spec.volumes[0].secret",
            "secrets",
        ),
        (
            "/spec/volumes",
            json!([{"name": "a", "configMap": {}}]),
            "spec.volumes[0].configMap",
            "config maps",
        ),
        (
            "/spec/volumes",
            json!([{"name": "a", "persistentVolumeClaim": {"claimName": "b"}}]),
            "spec.volumes[0].persistentVolumeClaim",
            "persistent volume claims",
        ),
        (
            "/spec/volumes",
            json!([{"name": "a", "projected": {"sources": [
                {"downwardAPI": {}},
                {"serviceAccountToken": {"path": "token"}},
            ]}}]),
            "spec.volumes[0].projected.sources[1].serviceAccountToken",
            "service accounts",
        ),
        (
            "/spec/containers/0/envFrom",
            json!([{"configMapRef": {"name": "a"}}]),
            "spec.containers[0].envFrom",
            "config maps and secrets",
        ),
        (
            "/spec/containers/0/env",
            json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]),
            "spec.containers[0].env[0].valueFrom.secretKeyRef",
            "secrets",
        ),
        (
            "/spec/containers/0/volumeDevices",
            json!([{"name": "a", "devicePath": "/b"}]),
            "spec.containers[0].volumeDevices",
            "persistent volume claims",
        ),
    ] {
        check(pointer, value, &refusal(field, what));
    }
    check(
        "/spec/priorityClassName",
        json!("mine"),
        "spec.priorityClassName: Forbidden: static pods cannot use objects of the API server (priority classes); use system-node-critical or system-cluster-critical, or write priority",
    );
}

#[test]
fn what_can_never_work_is_refused() {
    check(
        "/spec/ephemeralContainers",
        json!([{"name": "a", "image": "b"}]),
        "spec.ephemeralContainers: Forbidden: ephemeral containers are added while the pod runs, with `rubelet debug`",
    );
    check(
        "/spec/containers/0/readinessProbe",
        json!({"tcpSocket": {"port": 80}, "terminationGracePeriodSeconds": 5}),
        "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Forbidden: a readiness probe ends no container",
    );
    check(
        "/spec/schedulingGates",
        json!([{"name": "a"}]),
        "spec.schedulingGates: Forbidden: a pod of a manifest is on its node from the begin",
    );
    check(
        "/spec/volumes",
        json!([{"name": "a", "gitRepo": {"repository": "b"}}]),
        "spec.volumes[0].gitRepo: Forbidden: refused by Kubernetes as unsafe; clone in an init container",
    );
    check(
        "/metadata/deletionTimestamp",
        json!("2026-01-01T00:00:00Z"),
        "metadata.deletionTimestamp: Forbidden: delete the manifest to stop its pod",
    );
}

#[test]
fn a_pod_with_users_of_its_own_shares_nothing_that_they_would_have_to_own() {
    let mut pod = with("/spec/hostUsers", json!(false));
    let context = json!({"procMount": "Unmasked"});
    set(&mut pod, "/spec/containers/0/securityContext", context);
    let spec = parsed(&pod.to_string()).spec;
    assert!(!spec.host_users && spec.containers[0].security.proc_unmasked);
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        let mut shares = pod.clone();
        set(&mut shares, &format!("/spec/{field}"), json!(true));
        let found = mistakes(&shares.to_string());
        let wanted = format!("spec.{field}: Forbidden: may not be true beside hostUsers: false");
        assert_eq!(found, [wanted]);
    }
}

#[test]
fn an_empty_value_counts_as_not_set() {
    let mut pod = with("/spec/imagePullSecrets", json!([]));
    set(&mut pod, "/spec/serviceAccountName", json!(""));
    set(&mut pod, "/spec/runtimeClassName", Value::Null);
    set(&mut pod, "/spec/overhead", json!({}));
    set(&mut pod, "/spec/affinity", json!({}));
    set(&mut pod, "/spec/hostUsers", json!(true));
    set(&mut pod, "/spec/containers/0/envFrom", json!([]));
    set(&mut pod, "/spec/containers/0/livenessProbe", Value::Null);
    set(&mut pod, "/metadata/creationTimestamp", Value::Null);
    assert_eq!(parsed(&pod.to_string()).spec.containers.len(), 1);
    assert_eq!(without_effect(raw(&pod.to_string()).value()), []);
}

#[test]
fn fields_without_effect_are_accepted_and_can_be_shown() {
    let mut pod = with("/spec/schedulerName", json!("mine"));
    set(
        &mut pod,
        "/spec/tolerations",
        json!([{"operator": "Exists"}]),
    );
    set(&mut pod, "/spec/automountServiceAccountToken", json!(false));
    set(
        &mut pod,
        "/spec/affinity",
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}),
    );
    set(
        &mut pod,
        "/status",
        json!({"phase": "Running", "madeUp": {"x": 1}}),
    );
    let text = pod.to_string();
    parsed(&text);
    let fields: Vec<String> = without_effect(raw(&text).value())
        .into_iter()
        .map(|idle| idle.field)
        .collect();
    assert_eq!(
        fields,
        [
            "spec.affinity.podAntiAffinity",
            "spec.automountServiceAccountToken",
            "spec.schedulerName",
            "spec.tolerations",
            "status",
        ]
    );
}

//! Pods as an API server hands them out.

use std::time::Duration;

use rubelet_api::{
    container::{EnvFrom, EnvValue, FieldPath, KeyRef, ObjectKind},
    objects::references,
    parse::{ParsedApiPod, api_pod},
    pod::{Deletion, Pod, PodSource},
    scheduling::{NodeOperator, TaintEffect, TolerationOperator},
    volume::{
        DownwardContent, DownwardFile, FileVolume, KeyToPath, Medium, ObjectProjection,
        ObjectVolume, Projection, VolumeSource,
    },
};
use serde_json::{Value, json};

use crate::support::set;

/// A pod of a Deployment, with all that an API server and its admission plugins add.
pub(crate) fn deployed() -> Value {
    json!({
        "metadata": {
            "name": "web-7d4b9c-x2x4z",
            "generateName": "web-7d4b9c-",
            "namespace": "shop",
            "uid": "0b7e1b2c-9a0e-4c1e-8d2a-3f4f5a6b7c8d",
            "resourceVersion": "812",
            "generation": 2,
            "creationTimestamp": "2026-11-21T07:00:00Z",
            "labels": {"app": "web", "pod-template-hash": "7d4b9c"},
            "annotations": {"note": "x"},
            "finalizers": ["example.com/guard"],
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4b9c",
                "uid": "1", "controller": true, "blockOwnerDeletion": true}],
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update",
                "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {}}}],
        },
        "spec": {
            "volumes": [{
                "name": "kube-api-access-abcde",
                "projected": {
                    "defaultMode": 420,
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {"configMap": {"name": "kube-root-ca.crt",
                            "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                        {"downwardAPI": {"items": [{"path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
                    ],
                },
            }],
            "containers": [{
                "name": "web",
                "image": "busybox:1.36",
                "resources": {},
                "volumeMounts": [{"name": "kube-api-access-abcde", "readOnly": true,
                    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "builder",
            "serviceAccount": "builder",
            "nodeName": "node1",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists",
                    "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists",
                    "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "priority": 0,
            "enableServiceLinks": true,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    })
}

#[track_caller]
fn parsed(value: Value) -> ParsedApiPod {
    api_pod(value, "node1").unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// A pod about which there is nothing to say.
#[track_caller]
fn good(value: Value) -> Pod {
    let ParsedApiPod {
        pod,
        unknown_fields,
        left_out,
        unsupported,
    } = parsed(value);
    assert_eq!(left_out, []);
    assert_eq!(unknown_fields, [""; 0]);
    assert_eq!(unsupported, []);
    pod
}

/// The pod with `value` at `pointer`.
fn with(pointer: &str, value: Value) -> Value {
    let mut pod = deployed();
    set(&mut pod, pointer, value);
    pod
}

/// What is not supported, as text.
#[track_caller]
fn unsupported(value: Value) -> Vec<String> {
    let list = parsed(value).unsupported.into_iter();
    list.map(|error| error.to_string()).collect()
}

#[test]
fn a_pod_of_a_deployment_is_taken_as_it_is() {
    let pod = good(deployed());
    assert_eq!(pod.source, PodSource::Api);
    assert_eq!(&*pod.name.name, "web-7d4b9c-x2x4z");
    assert_eq!(&*pod.name.namespace, "shop");
    assert_eq!(pod.uid.as_str(), "0b7e1b2c-9a0e-4c1e-8d2a-3f4f5a6b7c8d");
    assert_eq!(pod.generation, 2);
    assert_eq!(pod.created, Some("2026-11-21T07:00:00Z".parse().unwrap()));
    assert_eq!(pod.deletion, None);
    assert_eq!(pod.sandbox_definition, None);
    assert_eq!(pod.annotations.len(), 1, "nothing is added");
    let spec = &pod.spec;
    assert_eq!(spec.containers[0].definition, None);
    assert_eq!(&*spec.node_name, "node1");
    assert_eq!(&*spec.service_account, "builder");
    assert!(spec.enable_service_links);
    assert_eq!(spec.tolerations.len(), 2, "nothing is added");
    let first = &spec.tolerations[0];
    assert_eq!(&*first.key, "node.kubernetes.io/not-ready");
    assert_eq!(first.operator, TolerationOperator::Exists);
    assert_eq!(first.effect, Some(TaintEffect::NoExecute));
    assert_eq!(first.seconds, Some(300));
    assert_eq!(
        spec.volumes[0].source,
        VolumeSource::Files(FileVolume::Projected {
            sources: vec![
                Projection::ServiceAccountToken {
                    audience: "".into(),
                    expiration: Duration::from_secs(3607),
                    path: "token".into(),
                },
                Projection::ConfigMap(ObjectProjection {
                    name: "kube-root-ca.crt".into(),
                    items: vec![KeyToPath {
                        key: "ca.crt".into(),
                        path: "ca.crt".into(),
                        mode: None,
                    }],
                    optional: false,
                }),
                Projection::DownwardApi {
                    items: vec![DownwardFile {
                        path: "namespace".into(),
                        content: DownwardContent::Field(FieldPath::Namespace),
                        mode: None,
                    }],
                },
            ],
            default_mode: 0o644,
        })
    );
}

#[test]
fn its_json_is_the_api_servers_without_what_only_that_needs() {
    let pod = good(deployed());
    let json: Value = serde_json::from_str(&pod.json).unwrap();
    assert_eq!(json["kind"], "Pod");
    assert_eq!(json["apiVersion"], "v1");
    assert_eq!(json["metadata"]["resourceVersion"], "812");
    assert_eq!(json["metadata"].get("managedFields"), None);
    assert_eq!(json.get("status"), None);
    assert_eq!(json["spec"], deployed()["spec"]);
}

#[test]
fn a_pod_that_is_to_go_says_until_when() {
    let mut pod = with("/metadata/deletionTimestamp", json!("2026-11-21T07:10:30Z"));
    set(&mut pod, "/metadata/deletionGracePeriodSeconds", json!(30));
    assert_eq!(
        good(pod).deletion,
        Some(Deletion {
            at: "2026-11-21T07:10:30Z".parse().unwrap(),
            grace: Duration::from_secs(30),
        })
    );
}

#[test]
fn objects_of_the_api_server_are_collected() {
    let mut pod = deployed();
    set(
        &mut pod,
        "/spec/containers/0/envFrom",
        json!([
            {"prefix": "C_", "configMapRef": {"name": "settings"}},
            {"secretRef": {"name": "extra", "optional": true}},
        ]),
    );
    set(
        &mut pod,
        "/spec/containers/0/env",
        json!([
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "more", "key": "a"}}},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "login", "key": "b", "optional": true}}},
        ]),
    );
    set(
        &mut pod,
        "/spec/imagePullSecrets",
        json!([{"name": "registry"}]),
    );
    set(
        &mut pod,
        "/spec/volumes",
        json!([
            {"name": "kube-api-access-abcde", "secret": {"secretName": "tls", "defaultMode": 256,
                "items": [{"key": "k", "path": "dir/k", "mode": 384}]}},
            {"name": "conf", "configMap": {"name": "files", "optional": true}},
        ]),
    );
    let pod = good(pod);
    let container = &pod.spec.containers[0];
    assert_eq!(
        container.env_from,
        [
            EnvFrom {
                prefix: "C_".into(),
                kind: ObjectKind::ConfigMap,
                name: "settings".into(),
                optional: false,
            },
            EnvFrom {
                prefix: "".into(),
                kind: ObjectKind::Secret,
                name: "extra".into(),
                optional: true,
            },
        ]
    );
    assert_eq!(
        container.env[1].value,
        EnvValue::SecretKey(KeyRef {
            object: "login".into(),
            key: "b".into(),
            optional: true,
        })
    );
    assert_eq!(
        pod.spec.volumes[0].source,
        VolumeSource::Files(FileVolume::Secret(ObjectVolume {
            name: "tls".into(),
            items: vec![KeyToPath {
                key: "k".into(),
                path: "dir/k".into(),
                mode: Some(0o600),
            }],
            default_mode: 0o400,
            optional: false,
        }))
    );
    let refs = references(&pod);
    let names = |set: &std::collections::BTreeSet<Box<str>>| -> Vec<String> {
        set.iter().map(ToString::to_string).collect()
    };
    assert_eq!(names(&refs.config_maps), ["files", "more", "settings"]);
    assert_eq!(names(&refs.secrets), ["extra", "login", "tls"]);
    assert_eq!(names(&refs.pull_secrets), ["registry"]);
    assert_eq!(
        names(&references(&good(deployed())).config_maps),
        ["kube-root-ca.crt"]
    );
}

#[test]
fn what_it_asks_of_the_node_is_left_to_admission() {
    let mut pod = with("/spec/nodeSelector", json!({"disk": "ssd"}));
    set(&mut pod, "/spec/os", json!({"name": "windows"}));
    set(&mut pod, "/spec/priorityClassName", json!("gold"));
    set(&mut pod, "/spec/priority", json!(7000));
    set(&mut pod, "/spec/runtimeClassName", json!("kata"));
    set(
        &mut pod,
        "/spec/overhead",
        json!({"cpu": "250m", "memory": "120Mi"}),
    );
    set(
        &mut pod,
        "/spec/affinity",
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{
                "matchExpressions": [
                    {"key": "zone", "operator": "In", "values": ["a", "b"]},
                    {"key": "later", "operator": "Novel"},
                ],
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node1"]}],
            }],
        }}}),
    );
    set(
        &mut pod,
        "/spec/containers/0/resources",
        json!({"requests": {"ephemeral-storage": "1Gi", "cpu": "100m"},
            "limits": {"example.com/dongle": "2"}}),
    );
    let spec = good(pod).spec;
    assert_eq!(spec.node_selector["disk"], "ssd".into());
    assert_eq!(spec.os.as_deref(), Some("windows"));
    assert_eq!(spec.priority, 7000);
    assert_eq!(spec.priority_class.as_deref(), Some("gold"));
    assert_eq!(spec.runtime_class.as_deref(), Some("kata"));
    assert_eq!(spec.overhead.cpu, Some(250));
    assert_eq!(spec.overhead.memory, Some(120 << 20));
    let affinity = spec.node_affinity.unwrap();
    let term = &affinity.required[0];
    assert_eq!(term.expressions[0].operator, NodeOperator::In);
    assert_eq!(
        term.expressions[1].operator,
        NodeOperator::Other("Novel".into())
    );
    assert_eq!(&*term.fields[0].key, "metadata.name");
    let requests = &spec.containers[0].resources.requests;
    assert_eq!(requests.ephemeral_storage, Some(1 << 30));
    assert_eq!(requests.extended, [("example.com/dongle".into(), 2)]);
}

#[test]
fn fields_of_newer_versions_are_named_once_and_change_nothing() {
    let mut pod = with("/spec/novelty", json!({"a": 1}));
    let container = pod["spec"]["containers"][0].clone();
    set(&mut pod, "/spec/containers", json!([container, container]));
    set(&mut pod, "/spec/containers/1/name", json!("other"));
    set(&mut pod, "/spec/containers/0/later", json!(true));
    set(&mut pod, "/spec/containers/1/later", json!(true));
    let ParsedApiPod {
        pod,
        unknown_fields,
        unsupported,
        ..
    } = parsed(pod);
    assert_eq!(unknown_fields, ["spec.containers[].later", "spec.novelty"]);
    assert_eq!(unsupported, []);
    assert_eq!(pod.spec.containers.len(), 2);
    assert!(pod.json.contains("novelty"), "it is shown");
}

#[test]
fn names_of_a_form_that_only_newer_versions_know_are_taken() {
    let mut pod = with(
        "/spec/containers/0/env",
        json!([{"name": "é=", "value": "x"}]),
    );
    set(
        &mut pod,
        "/metadata/labels",
        json!({"odd key!": "odd value!"}),
    );
    assert_eq!(&*good(pod).spec.containers[0].env[0].name, "é=");
}

#[test]
fn known_but_unsupported_fields_are_named() {
    for (pointer, value, expected) in [
        (
            "/spec/volumes",
            json!([{"name": "kube-api-access-abcde", "persistentVolumeClaim": {"claimName": "data"}}]),
            "spec.volumes[0].persistentVolumeClaim: Not supported yet: persistent volume claims come with a later release",
        ),
        (
            "/spec/volumes",
            json!([{"name": "kube-api-access-abcde", "csi": {"driver": "d"}}]),
            "spec.volumes[0].csi: Not supported yet: CSI drivers come with a later release",
        ),
        (
            "/spec/resourceClaims",
            json!([{"name": "gpu", "resourceClaimName": "a"}]),
            "spec.resourceClaims: Not supported yet: resource claims come with a later release",
        ),
        (
            "/spec/containers/0/imagePullPolicy",
            json!("Sometimes"),
            "spec.containers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
        ),
        (
            "/spec/volumes/0/projected/sources/2",
            json!({"clusterTrustBundle": {"path": "p"}}),
            "spec.volumes[0].projected.sources[2].clusterTrustBundle: Not supported yet: cluster trust bundles come with a later release",
        ),
    ] {
        assert_eq!(unsupported(with(pointer, value)), [expected], "{pointer}");
    }
}

#[test]
fn limits_of_local_storage_are_taken() {
    let mut pod = with(
        "/spec/containers/0/resources",
        json!({"limits": {"ephemeral-storage": "1Gi"}, "requests": {"ephemeral-storage": "1Gi"}}),
    );
    set(
        &mut pod,
        "/spec/volumes/0",
        json!({"name": "kube-api-access-abcde", "emptyDir": {"sizeLimit": "10Mi"}}),
    );
    let parsed = parsed(pod);
    assert_eq!(parsed.unsupported, []);
    let limits = &parsed.pod.spec.containers[0].resources.limits;
    assert_eq!(limits.ephemeral_storage, Some(1 << 30));
    assert_eq!(
        parsed.pod.spec.volumes[0].source,
        VolumeSource::EmptyDir {
            medium: Medium::Disk,
            size_limit: Some(10 << 20),
        }
    );
}

#[test]
fn ephemeral_containers_stand_in_the_specification() {
    let pod = good(with(
        "/spec/ephemeralContainers",
        json!([{"name": "debugger", "image": "busybox:1.36", "stdin": true, "tty": true,
            "targetContainerName": "web", "imagePullPolicy": "IfNotPresent", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}]),
    ));
    let one = &pod.spec.ephemeral_containers[0];
    assert_eq!(&*one.container.name, "debugger");
    assert_eq!(one.target.as_deref(), Some("web"));
    assert!(one.container.tty);
}

#[test]
fn what_is_no_pod_with_a_name_is_an_error() {
    for (value, field) in [
        (json!("pod"), ""),
        (
            with("/spec/containers/0/image", json!(7)),
            "spec.containers[0].image",
        ),
        (with("/metadata/name", json!("../up")), "metadata.name"),
        (
            with("/metadata/namespace", json!("a/b")),
            "metadata.namespace",
        ),
        (with("/metadata/uid", json!("..")), "metadata.uid"),
        (with("/metadata/uid", Value::Null), "metadata.uid"),
    ] {
        let errors = api_pod(value, "node1").expect_err(field);
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, [field]);
    }
}

//! Good manifests become what they say.

use std::time::Duration;

use k8s_openapi::api::core::v1 as k8s;
use rubelet_api::{
    container::{
        EnvValue, FieldPath, MountPropagation, PullPolicy, ResourceField, ResourceName, SubPath,
        TerminationMessagePolicy,
    },
    network::{DnsPolicy, Protocol},
    parse::{ParseContext, parse},
    pod::{Pod, PodSource, RestartPolicy},
    resources::QosClass,
    security::Profile,
    volume::{HostPathCheck, Medium, VolumeSource},
};
use serde_json::{Value, json};

use crate::support::{context, parsed, raw, set, small, with};

fn parse_with(pod: &Value, context: &ParseContext<'_>) -> Pod {
    parse(raw(&pod.to_string()), context).expect("the pod is good")
}

#[test]
fn a_static_pod_is_rewritten_as_the_kubelet_does() {
    let pod = parsed(&small().to_string());
    assert_eq!(pod.name.to_string(), "default/web-node1");
    assert_eq!(&*pod.spec.node_name, "Node1");
    assert_eq!(pod.uid.as_str().len(), 32);
    assert_eq!(pod.source, PodSource::File);
    assert_eq!(&*pod.annotations["kubernetes.io/config.source"], "file");
    assert_eq!(
        &*pod.annotations["kubernetes.io/config.seen"],
        "2026-11-21T07:08:09.5Z"
    );
    assert_eq!(pod.annotations["kubernetes.io/config.hash"].len(), 32);
    let json: k8s::Pod = serde_json::from_str(&pod.json).unwrap();
    assert_eq!(json.metadata.name.as_deref(), Some("web-node1"));
    assert_eq!(json.metadata.uid.as_deref(), Some(pod.uid.as_str()));
    let tolerations = json.spec.unwrap().tolerations.unwrap();
    assert_eq!(
        (
            tolerations[0].operator.as_deref(),
            tolerations[0].effect.as_deref()
        ),
        (Some("Exists"), Some("NoExecute"))
    );
    let http = parse_with(
        &small(),
        &ParseContext {
            source: PodSource::Http,
            ..context()
        },
    );
    assert_eq!(&*http.annotations["kubernetes.io/config.source"], "http");
    assert!(!http.json.contains("tolerations"));
}

#[test]
fn the_uid_comes_from_the_manifest_else_from_the_running_pod_else_from_the_name() {
    let mut edited = small();
    set(&mut edited, "/spec/containers/0/image", json!("other"));
    let derived = parsed(&small().to_string());
    let after_edit = parsed(&edited.to_string());
    assert_eq!(derived.uid, after_edit.uid);
    assert_ne!(
        derived.annotations["kubernetes.io/config.hash"],
        after_edit.annotations["kubernetes.io/config.hash"]
    );
    let adopting = ParseContext {
        adopted_uid: Some("running".into()),
        ..context()
    };
    assert_eq!(parse_with(&small(), &adopting).uid.as_str(), "running");
    let named = with("/metadata/uid", json!("0b1f-A"));
    assert_eq!(parse_with(&named, &adopting).uid.as_str(), "0b1f-A");
    let elsewhere = with("/metadata/namespace", json!("other"));
    assert_ne!(parsed(&elsewhere.to_string()).uid, derived.uid);
}

#[test]
fn what_a_manifest_leaves_out_gets_the_api_servers_defaults() {
    let pod = parsed(&small().to_string());
    let container = &pod.spec.containers[0];
    assert_eq!(container.pull_policy, PullPolicy::IfNotPresent);
    assert_eq!(&*container.termination_message_path, "/dev/termination-log");
    assert_eq!(
        container.termination_message_policy,
        TerminationMessagePolicy::File
    );
    assert_eq!(pod.spec.restart_policy, RestartPolicy::Always);
    assert_eq!(pod.spec.dns_policy, DnsPolicy::ClusterFirst);
    assert_eq!(pod.spec.termination_grace_period, Duration::from_secs(30));
    assert_eq!(pod.spec.qos, QosClass::BestEffort);
    let json: Value = serde_json::from_str(&pod.json).unwrap();
    assert_eq!(
        json,
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "annotations": {
                    "kubernetes.io/config.hash": pod.annotations["kubernetes.io/config.hash"],
                    "kubernetes.io/config.seen": "2026-11-21T07:08:09.5Z",
                    "kubernetes.io/config.source": "file",
                },
                "creationTimestamp": "2026-11-21T07:08:09Z",
                "name": "web-node1",
                "namespace": "default",
                "uid": pod.uid.as_str(),
            },
            "spec": {
                "containers": [{
                    "image": "busybox:1.36",
                    "imagePullPolicy": "IfNotPresent",
                    "name": "main",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }],
                "dnsPolicy": "ClusterFirst",
                "enableServiceLinks": true,
                "nodeName": "Node1",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30,
                "tolerations": [{"effect": "NoExecute", "operator": "Exists"}],
            },
        })
    );
}

#[test]
fn every_supported_field_of_a_pod_arrives() {
    let pod = parsed(include_str!("full.yaml"));
    let spec = &pod.spec;
    assert_eq!(spec.restart_policy, RestartPolicy::OnFailure);
    assert_eq!(spec.termination_grace_period, Duration::from_secs(5));
    assert_eq!(spec.active_deadline, Some(Duration::from_secs(600)));
    assert_eq!(
        (spec.hostname.as_deref(), spec.subdomain.as_deref()),
        (Some("web"), Some("sub"))
    );
    assert!(spec.set_hostname_as_fqdn && spec.share_process_namespace && spec.host_ipc);
    assert_eq!(
        (spec.priority, spec.priority_class.as_deref()),
        (2_000_000_000, Some("system-cluster-critical"))
    );
    assert_eq!(spec.dns_policy, DnsPolicy::None);
    assert_eq!(*spec.dns_config.nameservers, ["192.0.2.53".into()]);
    assert_eq!(
        *spec.dns_config.searches,
        ["example.com.".into(), "_srv.local".into()]
    );
    assert_eq!(
        *spec.dns_config.options,
        [("ndots".into(), Some("2".into())), ("rotate".into(), None)]
    );
    assert_eq!(
        *spec.host_aliases[0].hostnames,
        ["a.example".into(), "b.example".into()]
    );
    let security = &spec.security;
    assert_eq!(
        (security.fs_group, security.fs_group_on_root_mismatch),
        (Some(2000), true)
    );
    assert_eq!(
        (
            security.supplemental_groups.as_slice(),
            security.supplemental_groups_strict
        ),
        ([7, 8].as_slice(), true)
    );
    assert_eq!(
        *security.sysctls,
        [
            ("net.ipv4.conf.eth0/1.forwarding".into(), "1".into()),
            ("net.ipv4.tcp_syncookies".into(), "0".into())
        ]
    );
    assert_eq!(
        security.shared.seccomp,
        Some(Profile::Localhost("profiles/a.json".into()))
    );
    assert_eq!(
        &*security.shared.selinux.as_ref().unwrap().level,
        "s0:c1,c2"
    );
    assert_eq!(spec.qos, QosClass::Burstable);
}

#[test]
fn every_supported_field_of_a_volume_arrives() {
    let pod = parsed(include_str!("full.yaml"));
    let spec = &pod.spec;
    let VolumeSource::EmptyDir { medium, size_limit } = &spec.volume("memory").unwrap().source
    else {
        panic!()
    };
    assert_eq!((*medium, *size_limit), (Medium::Memory, Some(64 << 20)));
    let VolumeSource::HostPath { path, check } = &spec.volume("logs").unwrap().source else {
        panic!()
    };
    assert_eq!((&**path, *check), ("/var/log", HostPathCheck::Directory));
    let VolumeSource::EmptyDir { medium, size_limit } = &spec.volume("plain").unwrap().source
    else {
        panic!()
    };
    assert_eq!((*medium, *size_limit), (Medium::Disk, None));
}

#[test]
fn every_supported_field_of_a_container_arrives() {
    let pod = parsed(include_str!("full.yaml"));
    let spec = &pod.spec;
    assert_eq!(&*spec.init_containers[0].name, "setup");
    assert_eq!(spec.init_containers[0].pull_policy, PullPolicy::Always);
    assert_eq!(
        spec.init_containers[0].security.shared.apparmor,
        Some(Profile::Localhost("tight".into()))
    );
    let main = spec.container("main").unwrap();
    assert_eq!(main.pull_policy, PullPolicy::Never);
    assert_eq!(*main.command, ["/bin/sh".into(), "-c".into()]);
    assert_eq!(*main.args, ["echo $(GREETING)".into()]);
    assert_eq!(main.working_dir.as_deref(), Some("/work"));
    assert!(main.stdin && main.stdin_once && main.tty);
    assert_eq!(&*main.termination_message_path, "/tmp/end");
    assert_eq!(
        main.termination_message_policy,
        TerminationMessagePolicy::FallbackToLogsOnError
    );
    let port = &main.ports[0];
    assert_eq!(
        (
            port.name.as_deref(),
            port.container_port,
            port.host_port,
            port.protocol
        ),
        (Some("dns"), 53, Some(5353), Protocol::Udp)
    );
    assert_eq!(port.host_ip.as_deref(), Some("127.0.0.1"));
    assert_eq!(main.ports[1].host_port, None);
}

#[test]
fn every_supported_field_of_a_mount_arrives() {
    let pod = parsed(include_str!("full.yaml"));
    let main = pod.spec.container("main").unwrap();
    let mounts: Vec<_> = main
        .mounts
        .iter()
        .map(|mount| {
            (
                &*mount.volume,
                &*mount.mount_path,
                &mount.sub_path,
                mount.read_only,
                mount.propagation,
            )
        })
        .collect();
    assert_eq!(
        mounts,
        [
            (
                "logs",
                "/logs",
                &SubPath::Path("pods".into()),
                true,
                MountPropagation::HostToContainer
            ),
            (
                "memory",
                "/relative",
                &SubPath::Expression("$(NAME)".into()),
                false,
                MountPropagation::Private
            ),
            (
                "plain",
                "/plain",
                &SubPath::Whole,
                false,
                MountPropagation::Bidirectional
            ),
        ]
    );
}

#[test]
fn every_supported_field_of_security_and_resources_arrives() {
    let pod = parsed(include_str!("full.yaml"));
    let main = pod.spec.container("main").unwrap();
    let security = &main.security;
    assert!(security.privileged && security.read_only_root && !security.proc_unmasked);
    assert_eq!(
        *security.capabilities_add,
        ["NET_ADMIN".into(), "SYS_TIME".into()]
    );
    assert_eq!(*security.capabilities_drop, ["ALL".into()]);
    assert_eq!(
        (
            security.shared.run_as_user,
            security.shared.run_as_group,
            security.shared.run_as_non_root
        ),
        (Some(1000), Some(1001), Some(true))
    );
    assert_eq!(security.shared.apparmor, Some(Profile::Unconfined));
    let resources = &main.resources;
    assert_eq!(
        (resources.limits.cpu, resources.limits.memory),
        (Some(1500), Some(1 << 30))
    );
    assert_eq!(
        (resources.requests.cpu, resources.requests.memory),
        (Some(250), Some(1 << 30))
    );
    assert_eq!(
        (&*resources.limits.hugepages, &*resources.requests.hugepages),
        (
            [(2 << 20, 4 << 20)].as_slice(),
            [(2 << 20, 4 << 20)].as_slice()
        )
    );
}

#[test]
fn every_source_of_a_variable_arrives_in_order() {
    let pod = parsed(include_str!("full.yaml"));
    let env = &pod.spec.container("main").unwrap().env;
    let named: Vec<(&str, &EnvValue)> = env
        .iter()
        .map(|variable| (&*variable.name, &variable.value))
        .collect();
    let field = |path| EnvValue::Field(path);
    let resource = |container: Option<&str>, resource, divisor_milli| {
        EnvValue::Resource(ResourceField {
            container: container.map(Into::into),
            resource,
            divisor_milli,
        })
    };
    assert_eq!(
        named,
        [
            ("GREETING", &EnvValue::Literal("hello $(NAME)".into())),
            ("EMPTY", &EnvValue::Literal("".into())),
            ("NAME", &field(FieldPath::Name)),
            (
                "APP",
                &field(FieldPath::Label("app.kubernetes.io/name".into()))
            ),
            (
                "NOTE",
                &field(FieldPath::Annotation("Example.com/Note".into()))
            ),
            ("IPS", &field(FieldPath::PodIps)),
            ("CPU", &resource(None, ResourceName::LimitsCpu, 1)),
            (
                "MEMORY",
                &resource(Some("setup"), ResourceName::RequestsMemory, 1_048_576_000)
            ),
            ("WHOLE", &resource(None, ResourceName::RequestsCpu, 1000)),
        ]
    );
}

#[test]
fn with_host_network_ports_are_the_hosts() {
    let mut pod = with("/spec/hostNetwork", json!(true));
    set(
        &mut pod,
        "/spec/containers/0/ports",
        json!([{"containerPort": 80}, {"containerPort": 81, "hostPort": 0}]),
    );
    let ports: Vec<_> = parsed(&pod.to_string()).spec.containers[0]
        .ports
        .iter()
        .map(|port| port.host_port)
        .collect();
    assert_eq!(ports, [Some(80), Some(81)]);
}

#[test]
fn quality_of_service_counts_init_containers_too() {
    let both = |cpu: &str| json!({"limits": {"cpu": cpu, "memory": "1Gi"}});
    for (init, main, expected) in [
        (json!({}), json!({}), QosClass::BestEffort),
        (
            json!({}),
            json!({"requests": {"cpu": "0"}}),
            QosClass::BestEffort,
        ),
        (both("1"), both("2"), QosClass::Guaranteed),
        (json!({}), both("2"), QosClass::Burstable),
        (
            both("1"),
            json!({"limits": {"cpu": "1"}}),
            QosClass::Burstable,
        ),
        (
            both("1"),
            json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}),
            QosClass::Burstable,
        ),
    ] {
        let mut pod = small();
        set(
            &mut pod,
            "/spec/initContainers",
            json!([{"name": "init", "image": "a", "resources": init}]),
        );
        set(&mut pod, "/spec/containers/0/resources", main);
        assert_eq!(parsed(&pod.to_string()).spec.qos, expected, "{pod}");
    }
}

#[test]
fn the_two_classes_of_every_cluster_have_their_priority() {
    let pod = parsed(&with("/spec/priorityClassName", json!("system-node-critical")).to_string());
    assert_eq!(pod.spec.priority, 2_000_001_000);
    assert!(pod.json.contains("\"priority\":2000001000"));
    let mut own = with("/spec/priorityClassName", json!("mine"));
    set(&mut own, "/spec/priority", json!(7));
    assert_eq!(parsed(&own.to_string()).spec.priority, 7);
    assert_eq!(parsed(&small().to_string()).spec.priority, 0);
}

#[test]
fn marks_of_an_api_server_are_dropped() {
    let mut pod = small();
    set(&mut pod, "/metadata/resourceVersion", json!("5"));
    set(
        &mut pod,
        "/metadata/managedFields",
        json!([{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]),
    );
    set(
        &mut pod,
        "/metadata/ownerReferences",
        json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]),
    );
    set(
        &mut pod,
        "/metadata/creationTimestamp",
        json!("2020-01-01T00:00:00Z"),
    );
    set(
        &mut pod,
        "/metadata/annotations",
        json!({"kubernetes.io/config.hash": "old", "mine": "x"}),
    );
    set(&mut pod, "/status", json!({"phase": "Running"}));
    let pod = parsed(&pod.to_string());
    let json: Value = serde_json::from_str(&pod.json).unwrap();
    let keys: Vec<&String> = json["metadata"].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "annotations",
            "creationTimestamp",
            "name",
            "namespace",
            "uid"
        ]
    );
    assert_eq!(
        json["metadata"]["creationTimestamp"],
        "2026-11-21T07:08:09Z"
    );
    assert_eq!(&*pod.annotations["mine"], "x");
    assert_ne!(&*pod.annotations["kubernetes.io/config.hash"], "old");
    assert_eq!(json.get("status"), None);
}

#[test]
fn names_that_match_this_node_may_be_selected() {
    let selector = json!({"kubernetes.io/os": "linux", "kubernetes.io/hostname": "Node1"});
    parsed(&with("/spec/nodeSelector", selector).to_string());
}

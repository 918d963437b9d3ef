//! What the runtime gets to know of hooks, sidecars and ephemeral containers.

use jiff::Timestamp;
use rubelet_api::{
    manifest,
    parse::{ParseContext, ephemeral_container, parse},
    pod::{Pod, PodSource},
    probe::hook_from_annotation,
};
use rubelet_base::ContainerId;
use rubelet_cri::v1;
use serde_json::{Value, json};

use super::{
    ContainerInputs, ImageUser, SandboxInputs, container_config,
    labels::{self, PORTS, PRE_STOP},
    sandbox_config,
};

fn pod(spec: &Value) -> Pod {
    let text =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec});
    let context = ParseContext {
        node_name: "node",
        source: PodSource::File,
        origin: "/a.yaml",
        adopted_uid: None,
        now: Timestamp::UNIX_EPOCH,
    };
    let raw = manifest::decode(&text.to_string()).pods.remove(0).unwrap();
    parse(raw, &context).unwrap()
}

fn sandbox(pod: &Pod) -> v1::PodSandboxConfig {
    let inputs = SandboxInputs {
        attempt: 0,
        log_directory: String::new(),
        hostname: String::new(),
        dns: v1::DnsConfig::default(),
        cgroup_parent: String::new(),
        resources: None,
        users: None,
    };
    sandbox_config(pod, inputs)
}

#[test]
fn the_hook_before_the_end_can_be_read_back_from_the_annotations() {
    for hook in [
        json!({"httpGet": {"port": "admin", "path": "/bye"}}),
        json!({"exec": {"command": ["sh", "-c", "echo \"bye\""]}}),
        json!({"sleep": {"seconds": 3}}),
    ] {
        let pod = pod(&json!({"containers": [{
            "name": "main", "image": "a",
            "ports": [{"name": "admin", "containerPort": 9901, "hostPort": 80, "hostIP": "127.0.0.1"}],
            "lifecycle": {"preStop": hook},
        }]}));
        let main = &pod.spec.containers[0];
        let annotations = labels::container_annotations(&pod, main, 0);
        let read = hook_from_annotation(
            &annotations[PRE_STOP],
            annotations.get(PORTS).map(String::as_str),
        );
        assert!(read.is_some());
        assert_eq!(read, main.lifecycle.as_ref().unwrap().pre_stop);
    }
    let pod = pod(&json!({"containers": [{
        "name": "main", "image": "a", "lifecycle": {"postStart": {"exec": {"command": ["a"]}}},
    }]}));
    let annotations = labels::container_annotations(&pod, &pod.spec.containers[0], 0);
    assert_eq!(annotations.get(PRE_STOP), None);
}

#[test]
fn host_ports_of_sidecars_are_mapped_and_those_of_other_init_containers_are_not() {
    let container = |name: &str, host_port: u16| {
        let ports = json!([{"containerPort": 80, "hostPort": host_port}]);
        json!({"name": name, "image": "a", "ports": ports})
    };
    let mut sidecar = container("sidecar", 8081);
    sidecar["restartPolicy"] = "Always".into();
    let pod = pod(&json!({
        "initContainers": [container("init", 8080), sidecar],
        "containers": [container("main", 8082)],
    }));
    let mappings = sandbox(&pod).port_mappings;
    let ports: Vec<i32> = mappings.iter().map(|one| one.host_port).collect();
    assert_eq!(ports, [8082, 8081]);
}

#[test]
fn a_privileged_ephemeral_container_is_allowed_in_its_sandbox() {
    let base = pod(&json!({"containers": [{"name": "main", "image": "a"}]}));
    let text = r#"{"name": "debug", "image": "a", "securityContext": {"privileged": true}}"#;
    let debug = ephemeral_container(text, &base).unwrap();
    let privileged = |pod: &Pod| {
        let linux = sandbox(pod).linux.unwrap();
        linux.security_context.unwrap().privileged
    };
    assert!(!privileged(&base));
    assert!(privileged(&base.with_ephemeral(vec![debug])));
}

#[test]
fn an_ephemeral_container_sees_the_processes_of_its_target() {
    let target = || Some(ContainerId::from("abc"));
    for (fields, target, pid, id) in [
        (json!({}), target(), v1::NamespaceMode::Target, "abc"),
        (json!({}), None, v1::NamespaceMode::Container, ""),
        (
            json!({"shareProcessNamespace": true}),
            target(),
            v1::NamespaceMode::Pod,
            "",
        ),
        (
            json!({"hostPID": true}),
            target(),
            v1::NamespaceMode::Node,
            "",
        ),
    ] {
        let mut spec = fields.clone();
        spec["containers"] = json!([{"name": "main", "image": "a"}]);
        let pod = pod(&spec);
        let text = r#"{"name": "debug", "image": "a", "targetContainerName": "main"}"#;
        let (debug, _) = ephemeral_container(text, &pod).unwrap();
        let inputs = ContainerInputs { target, ..inputs() };
        let config = container_config(&pod, &debug.container, inputs);
        let security = config.linux.unwrap().security_context.unwrap();
        let options = security.namespace_options.unwrap();
        assert_eq!((options.pid(), &*options.target_id), (pid, id), "{fields}");
    }
}

/// Inputs of a node that adds nothing.
fn inputs() -> ContainerInputs {
    ContainerInputs {
        restart_count: 0,
        image_id: String::new(),
        image_user: ImageUser::default(),
        env: Vec::new(),
        mounts: Vec::new(),
        resources: v1::LinuxContainerResources::default(),
        seccomp_default: false,
        seccomp_root: String::new(),
        target: None,
        users: None,
        thermal_throttle: Vec::new(),
    }
}

/// What moby and the kubelet 1.36 hide, and what they make read-only.
#[test]
fn kernel_interfaces_are_masked_as_the_kubelet_masks_them() {
    let throttle = [0, 1].map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle"));
    let of = |context: Value, own_users: bool| {
        let container = json!({"name": "main", "image": "a", "securityContext": context});
        let pod = pod(&json!({"hostUsers": !own_users, "containers": [container]}));
        let inputs = ContainerInputs {
            thermal_throttle: throttle.to_vec(),
            ..inputs()
        };
        let config = container_config(&pod, &pod.spec.containers[0], inputs);
        let security = config.linux.unwrap().security_context.unwrap();
        (security.masked_paths, security.readonly_paths)
    };
    let (masked, readonly) = of(json!({}), false);
    assert_eq!(
        masked,
        [
            "/proc/asound",
            "/proc/acpi",
            "/proc/interrupts",
            "/proc/kcore",
            "/proc/keys",
            "/proc/latency_stats",
            "/proc/timer_list",
            "/proc/timer_stats",
            "/proc/sched_debug",
            "/proc/scsi",
            "/sys/firmware",
            "/sys/devices/virtual/powercap",
            &throttle[0],
            &throttle[1],
        ]
    );
    assert_eq!(
        readonly,
        [
            "/proc/bus",
            "/proc/fs",
            "/proc/irq",
            "/proc/sys",
            "/proc/sysrq-trigger",
        ]
    );
    let nothing = (Vec::new(), Vec::new());
    assert_eq!(of(json!({"privileged": true}), false), nothing);
    assert_eq!(of(json!({"procMount": "Unmasked"}), true), nothing);
}

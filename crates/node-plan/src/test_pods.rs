//! Pods for the tests of this crate.

use rubelet_api::{
    container::{Container, PullPolicy, TerminationMessagePolicy},
    pod::{Pod, PodSource, PodSpec},
    resources::{ResourceAmounts, Resources},
    security::ContainerSecurity,
};
use rubelet_base::{PodName, PodUid};

/// Amounts of cpu and memory.
pub(crate) fn amounts(cpu: u64, memory: u64) -> ResourceAmounts {
    ResourceAmounts {
        cpu: Some(cpu),
        memory: Some(memory),
        ..ResourceAmounts::default()
    }
}

/// A container with requests and limits.
pub(crate) fn container(
    name: &str,
    requests: ResourceAmounts,
    limits: ResourceAmounts,
) -> Container {
    Container {
        name: name.into(),
        image: "busybox".into(),
        pull_policy: PullPolicy::IfNotPresent,
        command: Vec::new(),
        args: Vec::new(),
        working_dir: None,
        env_from: Vec::new(),
        env: Vec::new(),
        ports: Vec::new(),
        resources: Resources { requests, limits },
        restart_policy: None,
        restart_rules: Vec::new(),
        liveness: None,
        readiness: None,
        startup: None,
        lifecycle: None,
        mounts: Vec::new(),
        termination_message_path: "/dev/termination-log".into(),
        termination_message_policy: TerminationMessagePolicy::File,
        security: ContainerSecurity::default(),
        stdin: false,
        stdin_once: false,
        tty: false,
        hash: "0".into(),
        definition: None,
    }
}

/// A BestEffort pod from a file with one container that asks for nothing.
pub(crate) fn pod() -> Pod {
    Pod {
        uid: PodUid::from("1f2e"),
        name: PodName::new("default", "web"),
        labels: Default::default(),
        annotations: Default::default(),
        generation: 0,
        created: None,
        deletion: None,
        source: PodSource::File,
        spec: PodSpec {
            containers: vec![container("a", Default::default(), Default::default())],
            node_name: "node".into(),
            ..PodSpec::default()
        },
        sandbox_definition: None,
        resize_infeasible: None,
        json: "{}".into(),
    }
}

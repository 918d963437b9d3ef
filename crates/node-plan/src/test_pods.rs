//! Pods for the tests of this crate.

use std::time::Duration;

use rubelet_api::{
    container::{Container, PullPolicy, TerminationMessagePolicy},
    network::{DnsConfig, DnsPolicy},
    pod::{Pod, PodSource, PodSpec, RestartPolicy},
    resources::{QosClass, ResourceAmounts, Resources},
    security::{ContainerSecurity, PodSecurity},
};
use rubelet_base::{PodName, PodUid};

/// Amounts of cpu and memory.
pub(crate) fn amounts(cpu: u64, memory: u64) -> ResourceAmounts {
    ResourceAmounts {
        cpu: Some(cpu),
        memory: Some(memory),
        hugepages: Vec::new(),
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
        env: Vec::new(),
        ports: Vec::new(),
        resources: Resources { requests, limits },
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
        source: PodSource::File,
        spec: PodSpec {
            init_containers: Vec::new(),
            containers: vec![container("a", Default::default(), Default::default())],
            volumes: Vec::new(),
            restart_policy: RestartPolicy::Always,
            termination_grace_period: Duration::from_secs(30),
            active_deadline: None,
            node_name: "node".into(),
            hostname: None,
            subdomain: None,
            set_hostname_as_fqdn: false,
            host_network: false,
            host_pid: false,
            host_ipc: false,
            share_process_namespace: false,
            dns_policy: DnsPolicy::ClusterFirst,
            dns_config: DnsConfig::default(),
            host_aliases: Vec::new(),
            security: PodSecurity::default(),
            priority: 0,
            priority_class: None,
            qos: QosClass::BestEffort,
        },
        sandbox_definition: None,
        json: "{}".into(),
    }
}

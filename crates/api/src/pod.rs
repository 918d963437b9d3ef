//! The pod: identity, the lists of containers and volumes, and what holds for all of them.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use rubelet_base::{PodName, PodUid};
use serde_json::Value;

use crate::{
    container::{Container, DefinitionHash, EphemeralContainer},
    network::{DnsConfig, DnsPolicy, HostAlias},
    resources::{QosClass, ResourceAmounts, Resources},
    scheduling::{NodeAffinity, Toleration},
    security::PodSecurity,
    volume::Volume,
};

pub use crate::container::RestartPolicy;

/// A pod that passed defaulting, validation and the support matrix. Immutable, shared by `Arc`.
#[derive(Debug, Clone, PartialEq)]
pub struct Pod {
    /// `metadata.uid`.
    pub uid: PodUid,
    /// `metadata.namespace` and `metadata.name`; a static pod's name ends in the node's name.
    pub name: PodName,
    /// `metadata.labels`.
    pub labels: StringMap,
    /// `metadata.annotations`, with `kubernetes.io/config.*` for pods from a file or a URL.
    pub annotations: StringMap,
    /// `metadata.generation`: which version of the specification this is; 0 where nobody counts.
    pub generation: i64,
    /// `metadata.creationTimestamp` of a pod of the API server.
    pub created: Option<Timestamp>,
    /// The deletion that the API server asks for, with its deadline.
    pub deletion: Option<Deletion>,
    /// Where the pod came from.
    pub source: PodSource,
    /// The specification.
    pub spec: PodSpec,
    /// Hash of all that is fixed when the sandbox is created, as the user wrote it. `None` for
    /// pods whose specification can't change (those of the API server).
    pub sandbox_definition: Option<DefinitionHash>,
    /// Why a requested resize is not made; `None` without a request. The specification
    /// has the resources that were allocated.
    pub resize_infeasible: Option<&'static str>,
    /// The defaulted v1 Pod as JSON without `status`, for `/pods` and `-o yaml`.
    pub json: Box<str>,
}

impl Pod {
    /// This pod with these ephemeral containers and no others, also in its JSON. With each stands
    /// its own JSON, as [`crate::parse::ephemeral_container`] gives it. No definition changes.
    #[must_use]
    pub fn with_ephemeral(&self, containers: Vec<(EphemeralContainer, Value)>) -> Self {
        let mut pod = self.clone();
        let (containers, json): (Vec<_>, Vec<_>) = containers.into_iter().unzip();
        let mut whole: Value = serde_json::from_str(&self.json).unwrap_or_default();
        if json.is_empty() {
            if let Some(spec) = whole.get_mut("spec").and_then(Value::as_object_mut) {
                spec.remove("ephemeralContainers");
            }
        } else {
            whole["spec"]["ephemeralContainers"] = json.into();
        }
        pod.json = whole.to_string().into();
        pod.spec.ephemeral_containers = containers;
        pod
    }
}

/// `metadata.deletionTimestamp` and `metadata.deletionGracePeriodSeconds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// When the grace period is over, by the API server's clock.
    pub at: Timestamp,
    /// How much time the containers have to end, from when the deletion is first seen.
    pub grace: Duration,
}

/// Labels or annotations.
pub type StringMap = BTreeMap<Box<str>, Box<str>>;

/// The source of a pod, as written in the annotation `kubernetes.io/config.source`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PodSource {
    /// A manifest file or directory.
    File,
    /// A manifest URL.
    Http,
    /// The API server.
    Api,
}

impl PodSource {
    /// The annotation's value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Http => "http",
            Self::Api => "api",
        }
    }
}

/// `spec` of a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct PodSpec {
    /// `initContainers`, run one after the other before the others start.
    pub init_containers: Vec<Container>,
    /// `containers`, at least one.
    pub containers: Vec<Container>,
    /// `ephemeralContainers`, added while the pod runs.
    pub ephemeral_containers: Vec<EphemeralContainer>,
    /// `readinessGates`: conditions that must be True for the pod to be ready.
    pub readiness_gates: Vec<Box<str>>,
    /// `volumes`.
    pub volumes: Vec<Volume>,
    /// `restartPolicy`.
    pub restart_policy: RestartPolicy,
    /// `terminationGracePeriodSeconds`, default 30 s.
    pub termination_grace_period: Duration,
    /// `activeDeadlineSeconds`, counted from the pod's start time.
    pub active_deadline: Option<Duration>,
    /// `nodeName`: for static pods always this node.
    pub node_name: Box<str>,
    /// `hostname`.
    pub hostname: Option<Box<str>>,
    /// `hostnameOverride`: stands in for `hostname` and `subdomain`, and may hold dots.
    pub hostname_override: Option<Box<str>>,
    /// `subdomain`.
    pub subdomain: Option<Box<str>>,
    /// `setHostnameAsFQDN`.
    pub set_hostname_as_fqdn: bool,
    /// `hostNetwork`.
    pub host_network: bool,
    /// `hostPID`.
    pub host_pid: bool,
    /// `hostIPC`.
    pub host_ipc: bool,
    /// `hostUsers`: false gives the pod a user namespace.
    pub host_users: bool,
    /// `shareProcessNamespace`.
    pub share_process_namespace: bool,
    /// `dnsPolicy`.
    pub dns_policy: DnsPolicy,
    /// `dnsConfig`.
    pub dns_config: DnsConfig,
    /// `hostAliases`.
    pub host_aliases: Vec<HostAlias>,
    /// `securityContext`.
    pub security: PodSecurity,
    /// `priority`; static pods default to 2000001000 (system-node-critical) only when they say so.
    pub priority: i32,
    /// `priorityClassName`.
    pub priority_class: Option<Box<str>>,
    /// `serviceAccountName`: empty for static pods.
    pub service_account: Box<str>,
    /// `enableServiceLinks`: whether containers see variables for the services of the namespace.
    pub enable_service_links: bool,
    /// `imagePullSecrets`: names of secrets.
    pub image_pull_secrets: Vec<Box<str>>,
    /// `runtimeClassName`.
    pub runtime_class: Option<Box<str>>,
    /// `resources` of the whole pod; where they are given, they count instead of what its containers
    /// have together. A request that is not given is the containers', or else the limit.
    pub resources: Option<Resources>,
    /// `overhead`: what the sandbox needs beside the containers, as its runtime class says.
    pub overhead: ResourceAmounts,
    /// `os.name`.
    pub os: Option<Box<str>>,
    /// `nodeSelector`, which admission holds against the node's labels. Empty for static pods,
    /// whose selector is checked when they are read.
    pub node_selector: StringMap,
    /// `affinity.nodeAffinity`, as far as it is required.
    pub node_affinity: Option<NodeAffinity>,
    /// `tolerations`.
    pub tolerations: Vec<Toleration>,
    /// Quality of service, computed from requests and limits.
    pub qos: QosClass,
}

/// A specification without containers, with the defaults of the API.
impl Default for PodSpec {
    fn default() -> Self {
        Self {
            init_containers: Vec::new(),
            containers: Vec::new(),
            ephemeral_containers: Vec::new(),
            readiness_gates: Vec::new(),
            volumes: Vec::new(),
            restart_policy: RestartPolicy::Always,
            termination_grace_period: Duration::from_secs(30),
            active_deadline: None,
            node_name: "".into(),
            hostname: None,
            hostname_override: None,
            subdomain: None,
            set_hostname_as_fqdn: false,
            host_network: false,
            host_pid: false,
            host_ipc: false,
            host_users: true,
            share_process_namespace: false,
            dns_policy: DnsPolicy::ClusterFirst,
            dns_config: DnsConfig::default(),
            host_aliases: Vec::new(),
            security: PodSecurity::default(),
            priority: 0,
            priority_class: None,
            service_account: "".into(),
            enable_service_links: true,
            image_pull_secrets: Vec::new(),
            runtime_class: None,
            resources: None,
            overhead: ResourceAmounts::default(),
            os: None,
            node_selector: StringMap::new(),
            node_affinity: None,
            tolerations: Vec::new(),
            qos: QosClass::BestEffort,
        }
    }
}

impl PodSpec {
    /// Init and regular containers, in the order in which they are written.
    pub fn all_containers(&self) -> impl Iterator<Item = &Container> {
        self.init_containers.iter().chain(&self.containers)
    }

    /// The container of that name: init, regular or ephemeral.
    #[must_use]
    pub fn container(&self, name: &str) -> Option<&Container> {
        let ephemeral = self.ephemeral_containers.iter();
        self.all_containers()
            .chain(ephemeral.map(|one| &one.container))
            .find(|container| *container.name == *name)
    }

    /// The init container of that name, if it is one that runs beside the others (a sidecar: its
    /// own `restartPolicy` is Always), with its place among the init containers.
    #[must_use]
    pub fn sidecar(&self, name: &str) -> Option<(usize, &Container)> {
        self.sidecars().find(|(_, one)| *one.name == *name)
    }

    /// The sidecars, with their places among the init containers.
    pub fn sidecars(&self) -> impl Iterator<Item = (usize, &Container)> {
        let init = self.init_containers.iter().enumerate();
        init.filter(|(_, one)| one.restart_policy == Some(RestartPolicy::Always))
    }

    /// The volume of that name.
    #[must_use]
    pub fn volume(&self, name: &str) -> Option<&Volume> {
        self.volumes.iter().find(|volume| *volume.name == *name)
    }
}

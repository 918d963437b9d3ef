//! One container of a pod.

use crate::{
    network::ContainerPort,
    probe::{Lifecycle, Probe},
    resources::Resources,
    security::ContainerSecurity,
};

/// Hash of a definition as the user wrote it, before defaulting: `v1:` and 16 hex digits. Written
/// into the runtime's annotations, so that an edit restarts only what it changed and a new
/// release, whose defaults may differ, restarts nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionHash(pub Box<str>);

/// `restartPolicy` of a pod, or of one of its containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartPolicy {
    /// Restart after every exit.
    Always,
    /// Restart after an exit code that is not 0.
    OnFailure,
    /// Never restart.
    Never,
}

/// An init, regular or ephemeral container.
#[derive(Debug, Clone, PartialEq)]
pub struct Container {
    /// `name`, unique in the pod.
    pub name: Box<str>,
    /// `image` as written.
    pub image: Box<str>,
    /// `imagePullPolicy`; default Always for the tag `latest`, else IfNotPresent.
    pub pull_policy: PullPolicy,
    /// `command`: replaces the image's entry point when not empty.
    pub command: Vec<Box<str>>,
    /// `args`.
    pub args: Vec<Box<str>>,
    /// `workingDir`.
    pub working_dir: Option<Box<str>>,
    /// `envFrom`, in order.
    pub env_from: Vec<EnvFrom>,
    /// `env`, in order.
    pub env: Vec<EnvVar>,
    /// `ports`.
    pub ports: Vec<ContainerPort>,
    /// `resources`.
    pub resources: Resources,
    /// `restartPolicy`: replaces the pod's for this container.
    pub restart_policy: Option<RestartPolicy>,
    /// `restartPolicyRules`: the first that matches an exit code decides.
    pub restart_rules: Vec<RestartRule>,
    /// `livenessProbe`.
    pub liveness: Option<Box<Probe>>,
    /// `readinessProbe`.
    pub readiness: Option<Box<Probe>>,
    /// `startupProbe`.
    pub startup: Option<Box<Probe>>,
    /// `lifecycle`.
    pub lifecycle: Option<Box<Lifecycle>>,
    /// `volumeMounts`.
    pub mounts: Vec<VolumeMount>,
    /// `terminationMessagePath`, default `/dev/termination-log`.
    pub termination_message_path: Box<str>,
    /// `terminationMessagePolicy`.
    pub termination_message_policy: TerminationMessagePolicy,
    /// `securityContext`.
    pub security: ContainerSecurity,
    /// `stdin`.
    pub stdin: bool,
    /// `stdinOnce`.
    pub stdin_once: bool,
    /// `tty`.
    pub tty: bool,
    /// Upstream's hash over name and image, lower hex: the key by which a container that another
    /// kubelet started is recognised.
    pub hash: Box<str>,
    /// Hash of the whole definition; `None` for pods of the API server.
    pub definition: Option<DefinitionHash>,
}

impl Container {
    /// The first rule that matches an exit code.
    #[must_use]
    pub fn matching_rule(&self, exit_code: i32) -> Option<RestartAction> {
        self.restart_rules
            .iter()
            .find(|rule| rule.exit_codes.contains(&exit_code) != rule.negated)
            .map(|rule| rule.action)
    }
}

/// One entry of `restartPolicyRules`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestartRule {
    /// `action`.
    pub action: RestartAction,
    /// `exitCodes.operator` is NotIn.
    pub negated: bool,
    /// `exitCodes.values`.
    pub exit_codes: Vec<i32>,
}

/// `action` of a restart rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartAction {
    /// `Restart`: the container.
    Restart,
    /// `RestartAllContainers`: the whole pod, in place, from its init containers on.
    RestartAllContainers,
}

/// One entry of `ephemeralContainers`: started once beside the others, never restarted.
#[derive(Debug, Clone, PartialEq)]
pub struct EphemeralContainer {
    /// What is started.
    pub container: Container,
    /// `targetContainerName`: the container whose processes it sees.
    pub target: Option<Box<str>>,
}

/// `imagePullPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullPolicy {
    /// Ask the registry before each start.
    Always,
    /// Pull only what is not there.
    IfNotPresent,
    /// Never pull.
    Never,
}

/// `terminationMessagePolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminationMessagePolicy {
    /// Only the file counts.
    File,
    /// The end of the log, where the file is empty and the container failed.
    FallbackToLogsOnError,
}

/// One entry of `envFrom`: all keys of an object become variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvFrom {
    /// `prefix`, which is before each key.
    pub prefix: Box<str>,
    /// `configMapRef` or `secretRef`.
    pub kind: ObjectKind,
    /// `name` of the object, in the pod's namespace.
    pub name: Box<str>,
    /// `optional`: the object may be missing.
    pub optional: bool,
}

/// The two kinds of objects that hold keys and contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// ConfigMap.
    ConfigMap,
    /// Secret.
    Secret,
}

/// One entry of `env`.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvVar {
    /// `name`.
    pub name: Box<str>,
    /// Where the value comes from.
    pub value: EnvValue,
}

/// The value of an environment variable.
#[derive(Debug, Clone, PartialEq)]
pub enum EnvValue {
    /// `value`, with `$(VAR)` not expanded yet.
    Literal(Box<str>),
    /// `valueFrom.fieldRef`.
    Field(FieldPath),
    /// `valueFrom.resourceFieldRef`.
    Resource(ResourceField),
    /// `valueFrom.configMapKeyRef`.
    ConfigMapKey(KeyRef),
    /// `valueFrom.secretKeyRef`.
    SecretKey(KeyRef),
    /// `valueFrom.fileKeyRef`.
    FileKey(FileKeyRef),
}

/// One variable of a file in a volume of the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileKeyRef {
    /// `volumeName`.
    pub volume: Box<str>,
    /// `path` within the volume.
    pub path: Box<str>,
    /// `key`.
    pub key: Box<str>,
    /// `optional`: file or key may be missing; then there is no such variable.
    pub optional: bool,
}

/// One key of a config map or secret in the pod's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRef {
    /// `name` of the object.
    pub object: Box<str>,
    /// `key`.
    pub key: Box<str>,
    /// `optional`: object or key may be missing; then there is no such variable.
    pub optional: bool,
}

/// `fieldRef.fieldPath` of the downward API, as an environment variable may use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldPath {
    /// `metadata.name`.
    Name,
    /// `metadata.namespace`.
    Namespace,
    /// `metadata.uid`.
    Uid,
    /// `metadata.labels['KEY']`.
    Label(Box<str>),
    /// `metadata.annotations['KEY']`.
    Annotation(Box<str>),
    /// `spec.nodeName`.
    NodeName,
    /// `spec.serviceAccountName`: empty for static pods.
    ServiceAccountName,
    /// `status.hostIP`.
    HostIp,
    /// `status.hostIPs`.
    HostIps,
    /// `status.podIP`.
    PodIp,
    /// `status.podIPs`.
    PodIps,
}

/// `resourceFieldRef`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceField {
    /// `containerName`; `None` means the container itself.
    pub container: Option<Box<str>>,
    /// `resource`.
    pub resource: ResourceName,
    /// `divisor` in thousandths of a unit (a thousandth of a core, or of a byte); never 0.
    pub divisor_milli: u128,
}

/// `resource` of a `resourceFieldRef`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceName {
    /// `limits.cpu`; the node's allocatable where no limit is set.
    LimitsCpu,
    /// `limits.memory`; the node's allocatable where no limit is set.
    LimitsMemory,
    /// `requests.cpu`.
    RequestsCpu,
    /// `requests.memory`.
    RequestsMemory,
}

/// One entry of `volumeMounts`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeMount {
    /// `name` of the volume.
    pub volume: Box<str>,
    /// `mountPath`.
    pub mount_path: Box<str>,
    /// `subPath` or `subPathExpr`.
    pub sub_path: SubPath,
    /// `readOnly`.
    pub read_only: bool,
    /// `mountPropagation`.
    pub propagation: MountPropagation,
    /// `recursiveReadOnly`.
    pub recursive_read_only: RecursiveReadOnly,
}

/// `recursiveReadOnly` of a mount: whether what is mounted below a read-only mount is read-only, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RecursiveReadOnly {
    /// `Disabled`: it is as it was mounted.
    #[default]
    Disabled,
    /// `IfPossible`: it is where the runtime handler can do so.
    IfPossible,
    /// `Enabled`: it is, or the container does not start.
    Enabled,
}

/// Which part of a volume is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubPath {
    /// The whole volume.
    Whole,
    /// `subPath`: a relative path without `..`.
    Path(Box<str>),
    /// `subPathExpr`: as `subPath`, after expansion of `$(VAR)`.
    Expression(Box<str>),
}

/// `mountPropagation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountPropagation {
    /// `None`.
    Private,
    /// `HostToContainer`.
    HostToContainer,
    /// `Bidirectional`: privileged containers only.
    Bidirectional,
}

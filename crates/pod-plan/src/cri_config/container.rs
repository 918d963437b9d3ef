//! `ContainerConfig`.

use rubelet_api::{container::Container, pod::Pod, security::UserRange};
use rubelet_base::ContainerId;
use rubelet_cri::v1;

use super::{env, expand::expand, labels, security, security::ImageUser};

/// The inputs of a container's configuration beside its specification.
#[derive(Debug, Clone)]
pub struct ContainerInputs {
    /// `metadata.attempt` and the restart count.
    pub restart_count: u32,
    /// The image as the runtime identifies it.
    pub image_id: String,
    /// The user of the image's configuration.
    pub image_user: ImageUser,
    /// The environment, resolved.
    pub env: Vec<(String, String)>,
    /// All mounts.
    pub mounts: Vec<v1::Mount>,
    /// Limits and shares in the kernel's units.
    pub resources: v1::LinuxContainerResources,
    /// True if containers without a profile get the runtime's default (`seccompDefault`).
    pub seccomp_default: bool,
    /// Directory of Localhost seccomp profiles.
    pub seccomp_root: String,
    /// The container whose PID namespace an ephemeral container joins.
    pub target: Option<ContainerId>,
    /// The pod's ID range, if it has a user namespace.
    pub users: Option<UserRange>,
    /// `/sys/devices/system/cpu/cpuN/thermal_throttle` of each processor that has it: masked
    /// in addition to the fixed paths.
    pub thermal_throttle: Vec<String>,
}

/// Builds the configuration from which a runtime creates a container.
#[must_use]
pub fn container_config(
    pod: &Pod,
    container: &Container,
    inputs: ContainerInputs,
) -> v1::ContainerConfig {
    let expanded = |words: &[Box<str>]| -> Vec<String> {
        words
            .iter()
            .map(|word| expand(word, |name| env::lookup(&inputs.env, name)))
            .collect()
    };
    let security = security::container(pod, container, &inputs);
    v1::ContainerConfig {
        metadata: Some(v1::ContainerMetadata {
            name: container.name.to_string(),
            attempt: inputs.restart_count,
        }),
        image: Some(v1::ImageSpec {
            image: inputs.image_id,
            user_specified_image: container.image.to_string(),
            ..v1::ImageSpec::default()
        }),
        command: expanded(&container.command),
        args: expanded(&container.args),
        working_dir: container
            .working_dir
            .as_deref()
            .unwrap_or_default()
            .to_owned(),
        labels: labels::container_labels(pod, container),
        annotations: labels::container_annotations(pod, container, inputs.restart_count),
        log_path: format!("{}/{}.log", container.name, inputs.restart_count),
        stdin: container.stdin,
        stdin_once: container.stdin_once,
        tty: container.tty,
        linux: Some(v1::LinuxContainerConfig {
            resources: Some(inputs.resources),
            security_context: Some(security),
        }),
        envs: inputs
            .env
            .into_iter()
            .map(|(key, value)| v1::KeyValue {
                key,
                value: value.into(),
            })
            .collect(),
        mounts: inputs.mounts,
        ..v1::ContainerConfig::default()
    }
}

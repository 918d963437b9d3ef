//! `ContainerConfig`.

use rubelet_api::{container::Container, pod::Pod};
use rubelet_cri::v1;

use super::{ContainerInputs, env, expand::expand, labels, security};

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

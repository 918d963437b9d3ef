//! Pods by calls of the runtime, without an agent.

use std::collections::BTreeMap;

use anyhow::Result;
use rubelet_cri::{RuntimeService, v1};
use rubelet_testbed::images;

/// A running pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pod {
    /// The sandbox's id.
    pub(super) sandbox: String,
    /// The id of its container.
    pub(super) container: String,
}

/// Creates a pod and starts its container.
pub(super) async fn start_pod(
    runtime: &impl RuntimeService,
    config: v1::PodSandboxConfig,
) -> Result<Pod> {
    let sandbox = runtime
        .run_pod_sandbox(v1::RunPodSandboxRequest {
            config: Some(config.clone()),
            runtime_handler: String::new(),
        })
        .await?
        .pod_sandbox_id;
    let container = runtime
        .create_container(v1::CreateContainerRequest {
            pod_sandbox_id: sandbox.clone(),
            config: Some(container()),
            sandbox_config: Some(config),
        })
        .await?
        .container_id;
    let start = v1::StartContainerRequest {
        container_id: container.clone(),
    };
    runtime.start_container(start).await?;
    Ok(Pod { sandbox, container })
}

/// Stops and removes a pod, the container with the default grace period of 30 s.
pub(super) async fn stop_pod(runtime: &impl RuntimeService, pod: Pod) -> Result<()> {
    let stop = v1::StopContainerRequest {
        container_id: pod.container,
        timeout: 30,
    };
    runtime.stop_container(stop).await?;
    let stop = v1::StopPodSandboxRequest {
        pod_sandbox_id: pod.sandbox,
    };
    runtime.stop_pod_sandbox(stop).await?;
    Ok(())
}

/// The sandbox of the pod with this number; logs and cgroup are below the two directories.
pub(super) fn sandbox(number: usize, logs: &str, cgroup: &str) -> v1::PodSandboxConfig {
    v1::PodSandboxConfig {
        metadata: Some(v1::PodSandboxMetadata {
            name: format!("pod-{number:03}"),
            uid: format!("uid-{number:03}"),
            namespace: "default".into(),
            attempt: 0,
        }),
        hostname: format!("pod-{number:03}"),
        log_directory: format!("{logs}/{number:03}"),
        linux: Some(v1::LinuxPodSandboxConfig {
            cgroup_parent: format!("{cgroup}/{number:03}"),
            security_context: Some(v1::LinuxSandboxSecurityContext {
                namespace_options: own_processes(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn container() -> v1::ContainerConfig {
    v1::ContainerConfig {
        metadata: Some(v1::ContainerMetadata {
            name: "main".into(),
            attempt: 0,
        }),
        image: Some(v1::ImageSpec {
            image: images::PAUSE.into(),
            ..Default::default()
        }),
        labels: BTreeMap::new(),
        log_path: "main.log".into(),
        linux: Some(v1::LinuxContainerConfig {
            security_context: Some(v1::LinuxContainerSecurityContext {
                namespace_options: own_processes(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn own_processes() -> Option<v1::NamespaceOption> {
    Some(v1::NamespaceOption {
        pid: v1::NamespaceMode::Container.into(),
        ..Default::default()
    })
}

//! Calls about one pod, without boilerplate.

use std::{sync::Arc, time::Duration};

use rubelet_cri::{CriResult, RuntimeService, v1};
use rubelet_sim::Sim;

/// A pod of one model. Its UID is `uid-` followed by its name.
pub(crate) struct Pod {
    pub(crate) sim: Sim,
    pub(crate) runtime: Arc<dyn RuntimeService>,
    pub(crate) config: v1::PodSandboxConfig,
    pub(crate) uid: String,
}

impl Pod {
    /// In a new model that has the image `app`.
    pub(crate) fn new() -> Self {
        let sim = Sim::new();
        sim.add_image("app");
        Self::named(&sim, "p")
    }

    pub(crate) fn named(sim: &Sim, name: &str) -> Self {
        let uid = format!("uid-{name}");
        let metadata = v1::PodSandboxMetadata {
            name: name.to_owned(),
            namespace: "default".to_owned(),
            uid: uid.clone(),
            attempt: 0,
        };
        let config = v1::PodSandboxConfig {
            metadata: Some(metadata),
            log_directory: format!("/var/log/pods/{name}"),
            labels: [("io.kubernetes.pod.uid".to_owned(), uid.clone())].into(),
            ..Default::default()
        };
        Self {
            sim: sim.clone(),
            runtime: sim.runtime(),
            config,
            uid,
        }
    }

    pub(crate) async fn run(&self) -> CriResult<String> {
        let request = v1::RunPodSandboxRequest {
            config: Some(self.config.clone()),
            ..Default::default()
        };
        Ok(self.runtime.run_pod_sandbox(request).await?.pod_sandbox_id)
    }

    pub(crate) async fn create(
        &self,
        sandbox: &str,
        name: &str,
        attempt: u32,
    ) -> CriResult<String> {
        let config = v1::ContainerConfig {
            metadata: Some(v1::ContainerMetadata {
                name: name.to_owned(),
                attempt,
            }),
            image: Some(v1::ImageSpec {
                image: "app".to_owned(),
                ..Default::default()
            }),
            log_path: format!("{name}/{attempt}.log"),
            labels: self.config.labels.clone(),
            ..Default::default()
        };
        let request = v1::CreateContainerRequest {
            pod_sandbox_id: sandbox.to_owned(),
            config: Some(config),
            sandbox_config: Some(self.config.clone()),
        };
        Ok(self.runtime.create_container(request).await?.container_id)
    }

    pub(crate) async fn start(&self, container: &str) -> CriResult<()> {
        let container_id = container.to_owned();
        let request = v1::StartContainerRequest { container_id };
        self.runtime.start_container(request).await.map(|_| ())
    }

    /// A sandbox with one running container; the identifiers of both.
    pub(crate) async fn up(&self, name: &str) -> (String, String) {
        let sandbox = self.run().await.expect("the name is free");
        let container = self
            .create(&sandbox, name, 0)
            .await
            .expect("the image is there");
        self.start(&container).await.expect("it was just created");
        (sandbox, container)
    }

    pub(crate) async fn stop(&self, container: &str, grace: i64) -> CriResult<()> {
        let request = v1::StopContainerRequest {
            container_id: container.to_owned(),
            timeout: grace,
        };
        self.runtime.stop_container(request).await.map(|_| ())
    }

    pub(crate) async fn remove(&self, container: &str) -> CriResult<()> {
        let container_id = container.to_owned();
        let request = v1::RemoveContainerRequest { container_id };
        self.runtime.remove_container(request).await.map(|_| ())
    }

    pub(crate) async fn stop_sandbox(&self, id: &str) -> CriResult<()> {
        let pod_sandbox_id = id.to_owned();
        let request = v1::StopPodSandboxRequest { pod_sandbox_id };
        self.runtime.stop_pod_sandbox(request).await.map(|_| ())
    }

    pub(crate) async fn remove_sandbox(&self, id: &str) -> CriResult<()> {
        let pod_sandbox_id = id.to_owned();
        let request = v1::RemovePodSandboxRequest { pod_sandbox_id };
        self.runtime.remove_pod_sandbox(request).await.map(|_| ())
    }

    pub(crate) async fn sandbox_status(&self, id: &str) -> CriResult<v1::PodSandboxStatus> {
        let request = v1::PodSandboxStatusRequest {
            pod_sandbox_id: id.to_owned(),
            ..Default::default()
        };
        let status = self.runtime.pod_sandbox_status(request).await?.status;
        Ok(status.expect("an answer has a status"))
    }

    pub(crate) async fn status(&self, container: &str) -> CriResult<v1::ContainerStatus> {
        let request = v1::ContainerStatusRequest {
            container_id: container.to_owned(),
            ..Default::default()
        };
        let status = self.runtime.container_status(request).await?.status;
        Ok(status.expect("an answer has a status"))
    }

    /// Exit code and reason of a container that has exited.
    pub(crate) async fn exit(&self, container: &str) -> (i32, String) {
        let status = self.status(container).await.expect("it was not removed");
        assert_eq!(status.state(), v1::ContainerState::ContainerExited);
        (status.exit_code, status.reason)
    }
}

/// Lets time pass.
pub(crate) async fn after(time: Duration) {
    tokio::time::advance(time).await;
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

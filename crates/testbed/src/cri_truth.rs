//! The runtime's own state, queried over CRI without an agent.

use std::time::Duration;

use anyhow::{Context, Result, bail};
pub use rubelet_cri::v1::ContainerState;
use rubelet_cri::{CriErrorKind, CriResult, ImageService, RuntimeService, v1};
use rubelet_cri_grpc::{CriClient, Timeouts};
use tokio::runtime::Runtime;

use crate::wait;

/// Timeout of one query.
const TIMEOUTS: Timeouts = Timeouts {
    request: Duration::from_secs(60),
};

/// Timeout of a command in a container.
const EXEC_SECONDS: i64 = 30;

/// A blocking CRI client. Not for use inside an async runtime.
pub struct CriTruth {
    client: CriClient,
    runtime: Runtime,
}

/// A sandbox as the runtime lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The runtime's id.
    pub id: String,
    /// Name of the pod.
    pub pod: String,
    /// Namespace of the pod.
    pub namespace: String,
    /// Uid of the pod.
    pub uid: String,
    /// Number of earlier sandboxes of the pod.
    pub attempt: u32,
    /// Whether it is ready.
    pub ready: bool,
}

/// A container as the runtime lists it, running or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The runtime's id.
    pub id: String,
    /// The id of its sandbox.
    pub sandbox: String,
    /// Name of the pod, from the label `io.kubernetes.pod.name`.
    pub pod: String,
    /// Name of the container in the pod.
    pub name: String,
    /// How many times this container was created before.
    pub attempt: u32,
    /// Created, running or exited.
    pub state: ContainerState,
    /// When it was created, in nanoseconds since 1970.
    pub created_at: i64,
    /// The annotation `io.kubernetes.container.restartCount`, if it is there.
    pub restart_count: Option<u32>,
}

impl Container {
    /// Whether it runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.state == ContainerState::ContainerRunning
    }
}

impl CriTruth {
    /// A client for the runtime at `endpoint`; connects with the first query.
    ///
    /// # Errors
    /// When the endpoint names no unix socket.
    pub fn new(endpoint: &str) -> Result<Self> {
        let client = CriClient::connect_lazy(endpoint, TIMEOUTS)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start an async runtime")?;
        Ok(Self { client, runtime })
    }

    /// The client itself, for calls that have no method here; see [`CriTruth::block_on`].
    #[must_use]
    pub fn client(&self) -> &CriClient {
        &self.client
    }

    /// Waits for a call made with [`CriTruth::client`].
    pub fn block_on<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    /// Waits until the runtime reports that it and its network are ready.
    ///
    /// # Errors
    /// It takes longer than `timeout`; the message contains the last response.
    pub fn wait_ready(&self, timeout: Duration) -> Result<()> {
        let mut answer = String::from("no answer yet");
        let ready = wait::until(
            "the runtime and its network are ready",
            timeout,
            || match self.block_on(self.client.status(v1::StatusRequest::default())) {
                Ok(response) => {
                    let conditions = response.status.unwrap_or_default().conditions;
                    answer = conditions
                        .iter()
                        .map(|c| format!("{}={} {}", c.r#type, c.status, c.message))
                        .collect::<Vec<_>>()
                        .join(", ");
                    let ready = !conditions.is_empty() && conditions.iter().all(|c| c.status);
                    Ok(ready.then_some(()))
                }
                Err(error) => {
                    answer = error.to_string();
                    Ok(None)
                }
            },
        );
        ready.with_context(|| format!("its last response: {answer}"))
    }

    /// All sandboxes, ready or not.
    ///
    /// # Errors
    /// The runtime can't be queried.
    pub fn sandboxes(&self) -> Result<Vec<Sandbox>> {
        let request = v1::ListPodSandboxRequest::default();
        let listed = self.ask(|| self.client.list_pod_sandbox(request.clone()))?;
        Ok(listed.items.into_iter().map(sandbox).collect())
    }

    /// All containers, including exited ones.
    ///
    /// # Errors
    /// The runtime can't be queried.
    pub fn containers(&self) -> Result<Vec<Container>> {
        let request = v1::ListContainersRequest::default();
        let listed = self.ask(|| self.client.list_containers(request.clone()))?;
        Ok(listed.containers.into_iter().map(container).collect())
    }

    /// The containers of one sandbox, including exited ones. This is cheaper for the runtime than
    /// [`CriTruth::containers`].
    ///
    /// # Errors
    /// The runtime can't be queried.
    pub fn containers_of(&self, sandbox: &str) -> Result<Vec<Container>> {
        let request = v1::ListContainersRequest {
            filter: Some(v1::ContainerFilter {
                pod_sandbox_id: sandbox.to_owned(),
                ..Default::default()
            }),
        };
        let listed = self.ask(|| self.client.list_containers(request.clone()))?;
        Ok(listed.containers.into_iter().map(container).collect())
    }

    /// The running container `name` of pod `pod`, if there is one.
    ///
    /// # Errors
    /// The runtime can't be queried.
    pub fn running(&self, pod: &str, name: &str) -> Result<Option<Container>> {
        let mut all = self.containers()?;
        all.retain(|found| found.is_running() && found.pod == pod && found.name == name);
        Ok(all.pop())
    }

    /// When a container was started, in nanoseconds since 1970.
    ///
    /// # Errors
    /// The runtime can't be queried, or the container was not started.
    pub fn started_at(&self, id: &str) -> Result<i64> {
        let request = v1::ContainerStatusRequest {
            container_id: id.to_owned(),
            verbose: false,
        };
        let status = self.ask(|| self.client.container_status(request.clone()))?;
        let started_at = status.status.map(|status| status.started_at);
        started_at
            .filter(|at| *at > 0)
            .with_context(|| format!("the container {id} was not started"))
    }

    /// The PID of container `id`'s first process on the host.
    ///
    /// # Errors
    /// The container does not exist, or the runtime reports no PID.
    pub fn pid(&self, id: &str) -> Result<u32> {
        let request = v1::ContainerStatusRequest {
            container_id: id.to_owned(),
            verbose: true,
        };
        let status = self.ask(|| self.client.container_status(request.clone()))?;
        let info = status
            .info
            .get("info")
            .context("the runtime returned no details")?;
        let info: serde_json::Value = serde_json::from_str(info)?;
        info["pid"]
            .as_u64()
            .and_then(|pid| u32::try_from(pid).ok())
            .filter(|pid| *pid > 0)
            .with_context(|| format!("the runtime reports no PID of container {id}"))
    }

    /// Runs a command in a running container; returns its standard output.
    ///
    /// # Errors
    /// When it can't be run, or its exit code isn't 0.
    pub fn exec(&self, id: &str, command: &[&str]) -> Result<String> {
        let request = v1::ExecSyncRequest {
            container_id: id.to_owned(),
            cmd: command.iter().map(ToString::to_string).collect(),
            timeout: EXEC_SECONDS,
        };
        let done = self.block_on(self.client.exec_sync(request))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if done.exit_code != 0 {
            bail!(
                "{command:?} in container {id} ended with {}: {}{}",
                done.exit_code,
                text(&done.stdout),
                text(&done.stderr)
            );
        }
        Ok(text(&done.stdout))
    }

    /// All names of all images.
    ///
    /// # Errors
    /// The runtime can't be queried.
    pub fn image_names(&self) -> Result<Vec<String>> {
        let request = v1::ListImagesRequest::default();
        let listed = self.ask(|| self.client.list_images(request.clone()))?;
        Ok(listed
            .images
            .into_iter()
            .flat_map(|image| image.repo_tags)
            .collect())
    }

    /// How many images have neither a tag nor a repository digest.
    ///
    /// # Errors
    /// The runtime does not respond.
    pub fn images_without_name(&self) -> Result<usize> {
        let request = v1::ListImagesRequest::default();
        let listed = self.ask(|| self.client.list_images(request.clone()))?;
        let mut images = listed.images;
        images.retain(|image| image.repo_tags.is_empty() && image.repo_digests.is_empty());
        Ok(images.len())
    }

    /// Sends a query; retries once if the runtime was restarted since the last query, which only a
    /// query detects.
    fn ask<T, F: Future<Output = CriResult<T>>>(&self, question: impl Fn() -> F) -> Result<T> {
        let answer = match self.block_on(question()) {
            Err(error) if error.kind == CriErrorKind::Unavailable => self.block_on(question()),
            answer => answer,
        };
        Ok(answer?)
    }
}

fn sandbox(item: v1::PodSandbox) -> Sandbox {
    let ready = item.state() == v1::PodSandboxState::SandboxReady;
    let metadata = item.metadata.unwrap_or_default();
    Sandbox {
        id: item.id,
        pod: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        attempt: metadata.attempt,
        ready,
    }
}

fn container(item: v1::Container) -> Container {
    let state = item.state();
    let restart_count = item
        .annotations
        .get("io.kubernetes.container.restartCount")
        .and_then(|text| text.parse().ok());
    let metadata = item.metadata.unwrap_or_default();
    Container {
        id: item.id,
        sandbox: item.pod_sandbox_id,
        pod: item
            .labels
            .get("io.kubernetes.pod.name")
            .cloned()
            .unwrap_or_default(),
        name: metadata.name,
        attempt: metadata.attempt,
        state,
        created_at: item.created_at,
        restart_count,
    }
}

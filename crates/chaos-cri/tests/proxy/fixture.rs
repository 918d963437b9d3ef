//! A model runtime, a proxy in front of it, and a client.

use std::{future::Future, path::PathBuf, time::Duration};

use chaos_cri::{Chaos, Rules};
use rubelet_cri::{CriResult, RuntimeService, v1};
use rubelet_cri_grpc::{CriClient, Timeouts, serve};
use rubelet_sim::Sim;
use tempfile::TempDir;
use tokio::{net::UnixListener, task::JoinHandle, time::timeout};

/// More than any step needs on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);
const IMAGE: &str = "registry.local/app:1";

/// All three, in one directory.
pub(crate) struct Fixture {
    pub(crate) sim: Sim,
    pub(crate) chaos: Chaos,
    /// Through the proxy.
    pub(crate) client: CriClient,
    /// Through the proxy, on another connection, without a short timeout.
    pub(crate) patient: CriClient,
    /// Direct.
    pub(crate) direct: CriClient,
    pub(crate) directory: TempDir,
    server: JoinHandle<()>,
}

impl Fixture {
    pub(crate) async fn new(rules: &[&str]) -> Self {
        Self::with_timeout(rules, LONG).await
    }

    /// With this timeout for each call of the client.
    pub(crate) async fn with_timeout(rules: &[&str], request: Duration) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let sim = Sim::new();
        sim.add_image(IMAGE);
        let server = start_server(&sim, &directory.path().join("back"));
        let front = directory.path().join("front");
        let back = directory.path().join("back");
        let chaos = Chaos::start(&front, &back, of(rules)).await.unwrap();
        let client = |name: &str, request| {
            let path = directory.path().join(name);
            CriClient::connect_lazy(path.to_str().unwrap(), Timeouts { request }).unwrap()
        };
        Self {
            client: client("front", request),
            patient: client("front", LONG),
            direct: client("back", LONG),
            sim,
            chaos,
            server,
            directory,
        }
    }

    pub(crate) fn set_rules(&self, rules: &[&str]) {
        self.chaos.set_rules(of(rules));
    }

    /// Number of faults of each rule, in the order of their texts.
    pub(crate) fn counts(&self) -> Vec<u64> {
        self.chaos.injected().iter().map(|hit| hit.count).collect()
    }

    pub(crate) fn kill_runtime(&self) {
        self.server.abort();
    }

    pub(crate) fn start_runtime(&mut self) {
        self.server = start_server(&self.sim, &self.directory.path().join("back"));
    }

    /// The sandbox and a running container of a new pod.
    pub(crate) async fn start_pod(&self, name: &str) -> (String, String) {
        let sandbox = run_sandbox(&self.patient, name).await.unwrap();
        let container = create(&self.patient, name, &sandbox).await.unwrap();
        start(&self.patient, &container).await.unwrap();
        (sandbox, container)
    }
}

fn start_server(sim: &Sim, socket: &PathBuf) -> JoinHandle<()> {
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket).unwrap();
    tokio::spawn(serve(
        listener,
        sim.runtime(),
        sim.images(),
        std::future::pending(),
    ))
}

pub(crate) fn of(rules: &[&str]) -> Rules {
    Rules::new(1, rules.iter().map(|rule| rule.parse().unwrap()).collect())
}

/// The value, unless it takes too long.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    timeout(LONG, work).await.expect("it takes too long")
}

pub(crate) fn sandbox_config(name: &str) -> v1::PodSandboxConfig {
    v1::PodSandboxConfig {
        metadata: Some(v1::PodSandboxMetadata {
            name: name.to_owned(),
            uid: format!("{name}-uid"),
            namespace: "default".to_owned(),
            attempt: 0,
        }),
        labels: labels(name),
        ..Default::default()
    }
}

fn labels(name: &str) -> std::collections::BTreeMap<String, String> {
    [
        ("io.kubernetes.pod.name", name.to_owned()),
        ("io.kubernetes.pod.namespace", "default".to_owned()),
        ("io.kubernetes.pod.uid", format!("{name}-uid")),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

pub(crate) async fn run_sandbox(client: &CriClient, name: &str) -> CriResult<String> {
    let request = v1::RunPodSandboxRequest {
        config: Some(sandbox_config(name)),
        ..Default::default()
    };
    Ok(client.run_pod_sandbox(request).await?.pod_sandbox_id)
}

pub(crate) async fn create(client: &CriClient, pod: &str, sandbox: &str) -> CriResult<String> {
    let request = v1::CreateContainerRequest {
        pod_sandbox_id: sandbox.to_owned(),
        config: Some(v1::ContainerConfig {
            metadata: Some(v1::ContainerMetadata {
                name: "main".to_owned(),
                attempt: 0,
            }),
            image: Some(v1::ImageSpec {
                image: IMAGE.to_owned(),
                ..Default::default()
            }),
            labels: labels(pod),
            ..Default::default()
        }),
        sandbox_config: Some(sandbox_config(pod)),
    };
    Ok(client.create_container(request).await?.container_id)
}

pub(crate) async fn start(client: &CriClient, id: &str) -> CriResult<v1::StartContainerResponse> {
    let container_id = id.to_owned();
    client
        .start_container(v1::StartContainerRequest { container_id })
        .await
}

pub(crate) async fn status(client: &CriClient, id: &str) -> CriResult<v1::ContainerStatusResponse> {
    let request = v1::ContainerStatusRequest {
        container_id: id.to_owned(),
        verbose: false,
    };
    client.container_status(request).await
}

pub(crate) async fn version(client: &CriClient) -> CriResult<v1::VersionResponse> {
    client.version(v1::VersionRequest::default()).await
}

//! The runtime under test, with pods and containers that are created without any agent.

#![allow(dead_code, reason = "each test program uses only a part of it")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rubelet_cri::{CriError, CriErrorKind, CriResult, RuntimeService, v1};
use rubelet_cri_grpc::CriClient;
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::{CgroupDriver, Containerd, CriTruth, Scratch, Served, images, wait};

/// Timeout of each wait on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A container that waits, and exits with code 0 on SIGTERM.
pub(crate) const WAITING: &str =
    "trap 'exit 0' TERM; echo ready; while :; do sleep 1000 & wait $!; done";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The runtime.
pub(crate) enum Runtime {
    Containerd(Containerd),
    Served(Served),
}

impl Runtime {
    fn start() -> Result<Self> {
        Ok(match Kind::wanted()? {
            Kind::Containerd => Self::Containerd(Containerd::start()?),
            Kind::Embedded => Self::Served(Served::start()?),
            Kind::Crio => bail!("these tests are of the embedded runtime and containerd"),
        })
    }

    pub(crate) fn scratch(&self) -> &Scratch {
        match self {
            Self::Containerd(runtime) => runtime.scratch(),
            Self::Served(runtime) => runtime.scratch(),
        }
    }

    pub(crate) fn truth(&self) -> Result<CriTruth> {
        match self {
            Self::Containerd(runtime) => runtime.truth(),
            Self::Served(runtime) => runtime.truth(),
        }
    }

    pub(crate) fn endpoint(&self) -> String {
        match self {
            Self::Containerd(runtime) => runtime.endpoint(),
            Self::Served(runtime) => runtime.environment().endpoint(),
        }
    }

    pub(crate) fn kill9(&self) -> Result<()> {
        match self {
            Self::Containerd(runtime) => runtime.kill9(),
            Self::Served(runtime) => runtime.kill9(),
        }
    }

    pub(crate) fn halt(&self) -> Result<()> {
        match self {
            Self::Containerd(runtime) => runtime.halt(),
            Self::Served(runtime) => runtime.halt(),
        }
    }

    pub(crate) fn resume(&self) -> Result<()> {
        match self {
            Self::Containerd(runtime) => runtime.resume(),
            Self::Served(runtime) => runtime.resume(),
        }
    }
}

/// One test's client of the runtime.
pub(crate) struct Subject {
    pub(crate) truth: CriTruth,
    pub(crate) runtime: Arc<Runtime>,
}

impl Subject {
    /// A client of the runtime that all tests of this process share. Not for tests that stop it.
    pub(crate) fn shared() -> Result<Self> {
        static SHARED: Mutex<Weak<Runtime>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = shared.upgrade() {
            return Self::on(runtime);
        }
        let started = Arc::new(Runtime::start()?);
        *shared = Arc::downgrade(&started);
        Self::on(started)
    }

    /// A client of a private runtime.
    pub(crate) fn alone() -> Result<Self> {
        Self::on(Arc::new(Runtime::start()?))
    }

    pub(crate) fn on(runtime: Arc<Runtime>) -> Result<Self> {
        let truth = runtime.truth()?;
        Ok(Self { truth, runtime })
    }

    /// Starts the runtime again, and lets the client notice that its connection is lost.
    pub(crate) fn resume(&self) -> Result<()> {
        self.runtime.resume()?;
        wait::until("the client is connected again", TIMEOUT, || {
            let version = self.client().version(v1::VersionRequest::default());
            Ok(self.ask(version).ok().map(drop))
        })
    }

    /// Reports that a test is skipped because it does not apply to this runtime.
    #[track_caller]
    pub(crate) fn skip(&self, why: &str) {
        let _ = rubelet_needs::applies(false, why);
    }

    pub(crate) fn is_embedded(&self) -> bool {
        matches!(*self.runtime, Runtime::Served(_))
    }

    pub(crate) fn client(&self) -> &CriClient {
        self.truth.client()
    }

    /// Waits for a call.
    pub(crate) fn ask<T>(&self, call: impl Future<Output = T>) -> T {
        self.truth.block_on(call)
    }

    /// A sandbox configuration with a unique name.
    pub(crate) fn sandbox_config(&self, name: &str) -> Result<v1::PodSandboxConfig> {
        let name = format!("{name}-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let scratch = self.runtime.scratch();
        let logs = scratch.subdir(&format!("logs/{name}"))?;
        // As a kubelet names it: in a cgroup of that name there is nothing but this pod.
        let cgroup = format!("{}/pod{name}", scratch.tag());
        Ok(v1::PodSandboxConfig {
            metadata: Some(v1::PodSandboxMetadata {
                uid: format!("uid-{name}"),
                name: name.clone(),
                namespace: "default".into(),
                attempt: 0,
            }),
            hostname: name.clone(),
            log_directory: logs.display().to_string(),
            linux: Some(v1::LinuxPodSandboxConfig {
                cgroup_parent: CgroupDriver::wanted()?.configured(&cgroup),
                ..Default::default()
            }),
            labels: BTreeMap::from([("io.kubernetes.pod.name".into(), name)]),
            ..Default::default()
        })
    }

    /// A running sandbox with the pod's own network.
    pub(crate) fn sandbox(&self, name: &str) -> Result<Sandbox<'_>> {
        self.sandbox_of(self.sandbox_config(name)?)
    }

    /// A running sandbox with this configuration.
    pub(crate) fn sandbox_of(&self, config: v1::PodSandboxConfig) -> Result<Sandbox<'_>> {
        self.sandbox_by(config, "")
    }

    /// A running sandbox with this configuration, by that runtime handler.
    pub(crate) fn sandbox_by(
        &self,
        mut config: v1::PodSandboxConfig,
        handler: &str,
    ) -> Result<Sandbox<'_>> {
        let linux = config.linux.get_or_insert_default();
        let security = linux.security_context.get_or_insert_default();
        security.namespace_options.get_or_insert_with(own_processes);
        let id = self.ask(run(self.client(), &config, handler))?;
        Ok(Sandbox {
            subject: self,
            id,
            config,
        })
    }
}

/// A kubelet's default: each container sees only its own processes.
fn own_processes() -> v1::NamespaceOption {
    v1::NamespaceOption {
        pid: v1::NamespaceMode::Container.into(),
        ..Default::default()
    }
}

/// Runs a sandbox; its id.
pub(crate) async fn run(
    client: &CriClient,
    config: &v1::PodSandboxConfig,
    handler: &str,
) -> CriResult<String> {
    let request = v1::RunPodSandboxRequest {
        config: Some(config.clone()),
        runtime_handler: handler.to_owned(),
    };
    Ok(client.run_pod_sandbox(request).await?.pod_sandbox_id)
}

/// A sandbox; removed with all its containers when the value is dropped.
pub(crate) struct Sandbox<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) id: String,
    pub(crate) config: v1::PodSandboxConfig,
}

impl Sandbox<'_> {
    /// A container's configuration: busybox with a shell script.
    pub(crate) fn script(&self, name: &str, script: &str) -> v1::ContainerConfig {
        v1::ContainerConfig {
            metadata: Some(v1::ContainerMetadata {
                name: name.into(),
                attempt: 0,
            }),
            image: Some(v1::ImageSpec {
                image: images::BUSYBOX_IMAGE.into(),
                ..Default::default()
            }),
            command: ["sh", "-c", script].map(String::from).into(),
            labels: BTreeMap::from([
                ("io.kubernetes.pod.name".into(), self.name()),
                ("io.kubernetes.container.name".into(), name.into()),
            ]),
            log_path: format!("{name}.log"),
            linux: Some(v1::LinuxContainerConfig::default()),
            ..Default::default()
        }
    }

    /// The name of its pod.
    pub(crate) fn name(&self) -> String {
        self.config.metadata.clone().unwrap_or_default().name
    }

    /// Creates a container; its id.
    pub(crate) fn create(&self, config: v1::ContainerConfig) -> CriResult<String> {
        self.subject.ask(self.creation(config))
    }

    /// The call of [`Sandbox::create`].
    pub(crate) async fn creation(&self, mut config: v1::ContainerConfig) -> CriResult<String> {
        let linux = config.linux.get_or_insert_default();
        let security = linux.security_context.get_or_insert_default();
        security.namespace_options.get_or_insert_with(own_processes);
        let request = v1::CreateContainerRequest {
            pod_sandbox_id: self.id.clone(),
            config: Some(config),
            sandbox_config: Some(self.config.clone()),
        };
        let created = self.subject.client().create_container(request).await?;
        Ok(created.container_id)
    }

    /// Creates and starts a container; its id.
    pub(crate) fn start(&self, config: v1::ContainerConfig) -> CriResult<String> {
        let id = self.create(config)?;
        self.subject.ask(start(self.subject.client(), &id))?;
        Ok(id)
    }

    /// A container that waits until it is stopped; its id.
    pub(crate) fn waiting(&self, name: &str) -> CriResult<String> {
        let id = self.start(self.script(name, WAITING))?;
        // Before it prints that it is ready, its trap is not set.
        self.wait_log(name, "ready").map_err(|error| {
            CriError::new("waiting", CriErrorKind::Canceled, format!("{error:#}"))
        })?;
        Ok(id)
    }

    /// Runs a script that must succeed; returns its standard output.
    pub(crate) fn output(&self, name: &str, script: &str) -> Result<String> {
        self.output_of(self.script(name, script))
    }

    /// Runs a container that must succeed; returns its standard output.
    pub(crate) fn output_of(&self, config: v1::ContainerConfig) -> Result<String> {
        let name = config.metadata.clone().unwrap_or_default().name;
        let id = self.start(config)?;
        let status = self.ended(&id)?;
        let log = self.log(&name)?;
        if status.exit_code != 0 {
            bail!(
                "container {name} ended with {} ({}): {log:#?}",
                status.exit_code,
                status.message
            );
        }
        Ok(text_of(&log, "stdout"))
    }

    /// Waits until a container has exited; its status.
    pub(crate) fn ended(&self, id: &str) -> Result<v1::ContainerStatus> {
        wait::until("the container has exited", TIMEOUT, || {
            let status = self.status(id)?;
            Ok((status.state() == v1::ContainerState::ContainerExited).then_some(status))
        })
    }

    /// A container's status.
    pub(crate) fn status(&self, id: &str) -> CriResult<v1::ContainerStatus> {
        self.subject.ask(status(self.subject.client(), id))
    }

    /// The file of a container's log.
    pub(crate) fn log_path(&self, name: &str) -> PathBuf {
        PathBuf::from(&self.config.log_directory).join(format!("{name}.log"))
    }

    /// The lines of a container's log.
    pub(crate) fn log(&self, name: &str) -> Result<Vec<LogLine>> {
        let path = self.log_path(name);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        text.lines().map(LogLine::parse).collect()
    }

    /// Waits until a container has written a line that contains `part`.
    pub(crate) fn wait_log(&self, name: &str, part: &str) -> Result<()> {
        wait::until(&format!("{name} has written {part:?}"), TIMEOUT, || {
            let log = self.log(name).unwrap_or_default();
            Ok(log
                .iter()
                .any(|line| line.text.contains(part))
                .then_some(()))
        })
    }

    /// The sandbox's status.
    pub(crate) fn own_status(&self) -> CriResult<v1::PodSandboxStatus> {
        let request = v1::PodSandboxStatusRequest {
            pod_sandbox_id: self.id.clone(),
            verbose: false,
        };
        let client = self.subject.client();
        let answer = self.subject.ask(client.pod_sandbox_status(request))?;
        Ok(answer.status.unwrap_or_default())
    }

    /// The pod's address.
    pub(crate) fn ip(&self) -> Result<String> {
        let network = self.own_status()?.network.unwrap_or_default();
        Ok(network.ip)
    }
}

impl Drop for Sandbox<'_> {
    fn drop(&mut self) {
        let client = self.subject.client();
        self.subject.ask(async {
            // Everything that is left is removed with the runtime.
            let _ = stop_sandbox(client, &self.id).await;
            let _ = remove_sandbox(client, &self.id).await;
        });
    }
}

/// One line of a log in the CRI's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogLine {
    pub(crate) time: String,
    pub(crate) stream: String,
    /// `F` for a whole line, `P` for a part of one.
    pub(crate) tag: String,
    pub(crate) text: String,
}

impl LogLine {
    fn parse(line: &str) -> Result<Self> {
        let mut words = line.splitn(4, ' ').map(str::to_owned);
        let mut next = || words.next().with_context(|| format!("a log line {line:?}"));
        Ok(Self {
            time: next()?,
            stream: next()?,
            tag: next()?,
            text: next()?,
        })
    }
}

/// The text of one stream.
pub(crate) fn text_of(log: &[LogLine], stream: &str) -> String {
    log.iter()
        .filter(|line| line.stream == stream)
        .map(|line| {
            let end = if line.tag == "F" { "\n" } else { "" };
            format!("{}{end}", line.text)
        })
        .collect()
}

pub(crate) async fn start(client: &CriClient, id: &str) -> CriResult<()> {
    let request = v1::StartContainerRequest {
        container_id: id.to_owned(),
    };
    client.start_container(request).await.map(drop)
}

/// Stops a container with this grace period, in seconds.
pub(crate) async fn stop(client: &CriClient, id: &str, grace: i64) -> CriResult<()> {
    let request = v1::StopContainerRequest {
        container_id: id.to_owned(),
        timeout: grace,
    };
    client.stop_container(request).await.map(drop)
}

pub(crate) async fn remove(client: &CriClient, id: &str) -> CriResult<()> {
    let request = v1::RemoveContainerRequest {
        container_id: id.to_owned(),
    };
    client.remove_container(request).await.map(drop)
}

pub(crate) async fn status(client: &CriClient, id: &str) -> CriResult<v1::ContainerStatus> {
    let request = v1::ContainerStatusRequest {
        container_id: id.to_owned(),
        verbose: false,
    };
    let answer = client.container_status(request).await?;
    Ok(answer.status.unwrap_or_default())
}

pub(crate) async fn stop_sandbox(client: &CriClient, id: &str) -> CriResult<()> {
    let request = v1::StopPodSandboxRequest {
        pod_sandbox_id: id.to_owned(),
    };
    client.stop_pod_sandbox(request).await.map(drop)
}

pub(crate) async fn remove_sandbox(client: &CriClient, id: &str) -> CriResult<()> {
    let request = v1::RemovePodSandboxRequest {
        pod_sandbox_id: id.to_owned(),
    };
    client.remove_pod_sandbox(request).await.map(drop)
}

pub(crate) async fn exec(
    client: &CriClient,
    id: &str,
    command: &[&str],
    timeout: i64,
) -> CriResult<v1::ExecSyncResponse> {
    let request = v1::ExecSyncRequest {
        container_id: id.to_owned(),
        cmd: command.iter().map(ToString::to_string).collect(),
        timeout,
    };
    client.exec_sync(request).await
}

/// Asserts that the call failed because the object does not exist.
#[track_caller]
pub(crate) fn not_found<T>(answer: CriResult<T>) {
    let error = refused(answer);
    assert_eq!(error.kind, CriErrorKind::NotFound, "{error}");
}

/// Asserts that the call failed; returns the error.
#[track_caller]
pub(crate) fn refused<T>(answer: CriResult<T>) -> CriError {
    match answer {
        Ok(_) => panic!("the call succeeded"),
        Err(error) => error,
    }
}

impl Subject {
    /// Asserts that the call failed because of the object's state. Containerd has no specific code
    /// for most of these; the embedded runtime has one.
    #[track_caller]
    pub(crate) fn wrong_state<T>(&self, answer: CriResult<T>) {
        let error = refused(answer);
        if self.is_embedded() {
            let code = rubelet_cri::Code::FailedPrecondition;
            assert_eq!(error.kind, CriErrorKind::Other(code), "{error}");
        }
        assert_ne!(error.kind, CriErrorKind::NotFound, "{error}");
    }

    /// Asserts that the call failed because the request is invalid.
    #[track_caller]
    pub(crate) fn invalid<T>(&self, answer: CriResult<T>) -> CriError {
        let error = refused(answer);
        if self.is_embedded() {
            assert_eq!(error.kind, CriErrorKind::InvalidArgument, "{error}");
        }
        error
    }
}

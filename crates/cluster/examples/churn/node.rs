//! A node of a model cluster: the whole agent between a model API server and a model runtime.

use std::{error::Error, io, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use rubelet_api::{
    container::Container,
    objects::PodObjects,
    pod::Pod,
    probe::{HttpGet, ProbeHandler},
};
use rubelet_base::{ContainerId, PodName, PodUid};
use rubelet_cgroup_plan::CgroupDriver;
use rubelet_cluster::{
    source::{self, ApiPods, SourceParts, admission_gate::AdmissionGate},
    status::{self, IgnoreDurations, StatusContext, StatusParts},
};
use rubelet_cri::v1;
use rubelet_image_pull::{
    image_access::ImageAccess, images::PullParallelism, node_logins::NodeLogins,
    pull_rate::PullRate,
};
use rubelet_kube::{Client, ClientConfig, ClientOptions, Connector, WatchReopener};
use rubelet_kubelet::{
    agent::{Agent, AgentParts},
    pod_host::PodHost,
    records::RecordWriter,
};
use rubelet_node_state::{
    clock::Clock,
    events::Recorder,
    host_error::{HostError, HostWarning},
    intents::IntentBoard,
    metrics::NodeMetrics,
    node_ips::NodeIps,
    objects::NoObjects,
};
use rubelet_pleg::{PID_QUERY_IDLE, PlegSettings};
use rubelet_pod_plan::{
    PlanSettings,
    cri_config::{
        ContainerFiles, SandboxInputs,
        env::{EnvContext, EnvFiles},
    },
};
use rubelet_probes::{NetProbe, ProbeOutcome, ProbeReport};
use rubelet_sim::Sim;
use sim_api::SimApi;
use tokio::sync::watch;

/// The node's name.
pub(crate) const NODE: &str = "n";

/// Where the agent keeps its records, in memory.
pub(crate) struct Disk {
    records: tempfile::TempDir,
    intents: tempfile::TempDir,
    kept: tempfile::TempDir,
}

impl Disk {
    pub(crate) fn new() -> io::Result<Self> {
        let directory = || tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Ok(Self {
            records: directory()?,
            intents: directory()?,
            kept: directory()?,
        })
    }
}

/// Starts an agent that takes its pods from this server, with so many requests a second; 0: without
/// a limit.
pub(crate) fn join(
    api: &Arc<SimApi>,
    sim: &Sim,
    disk: &Disk,
    clock: Clock,
    qps: f32,
) -> Result<Agent, Box<dyn Error>> {
    let recorder = Recorder::new(clock.clone());
    let known = Arc::new(ApiPods::new());
    let gate = Arc::new(AdmissionGate::new(
        Arc::clone(&known),
        Box::new(|_, _| Ok(())),
    ));
    let metrics = NodeMetrics::new();
    let mut agent = Agent::start(
        AgentParts {
            runtime: sim.runtime(),
            images: sim.images(),
            endpoint: "unix:///model".into(),
            runtime_name: "".into(),
            host: Arc::new(MemoryHost),
            clock: clock.clone(),
            records: RecordWriter::new(disk.records.path().to_owned()),
            node_name: NODE.into(),
            node_ips: NodeIps::fixed(Vec::new()),
            plan: PlanSettings::default(),
            pleg: PlegSettings {
                relist_period: Duration::from_secs(1),
                events: true,
                pid_query_idle: PID_QUERY_IDLE,
            },
            processes: None,
            pulls: PullParallelism::Unlimited,
            pull_rate: PullRate::unlimited(),
            starts_at_once: 8,
            stops_at_once: 64,
            log_rotation: None,
            image_collection: None,
            eviction: None,
            shutdown: None,
            node_cgroups: None,
            local_storage: None,
            net: Arc::new(NoNet),
            intents: IntentBoard::new(disk.intents.path().to_owned()),
            cluster: Arc::clone(&gate) as _,
            logins: NodeLogins::default(),
            image_access: ImageAccess::unchecked(),
            objects: Arc::new(NoObjects),
            metrics: Arc::clone(&metrics),
        },
        recorder.clone(),
    );
    let server = Arc::clone(api);
    let config = ClientConfig::anonymous("http://model")?.over(Connector::new(move || {
        let server = Arc::clone(&server);
        async move { Ok(server.connect()) }
    }));
    let options = ClientOptions {
        qps,
        ..ClientOptions::default()
    };
    let client = Client::new(config, options)?;
    let desired = watch::Sender::new(source::unknown());
    agent.run_pods(vec![desired.subscribe()]);
    let context = StatusContext {
        host_ips: Arc::new([]),
        runtime: "model".into(),
    };
    let reopener = WatchReopener::default();
    tokio::spawn(status::run(StatusParts {
        client: client.clone(),
        reopener: reopener.clone(),
        board: Arc::clone(&agent.pods),
        api: Arc::clone(&known),
        context: watch::Sender::new(context).subscribe(),
        clock: clock.clone(),
        metrics: Arc::new(IgnoreDurations),
    }));
    tokio::spawn(source::run(SourceParts {
        client,
        reopener,
        node_name: NODE.into(),
        directory: disk.kept.path().to_owned(),
        api: known,
        gate,
        intents: agent.intents().clone(),
        recorder,
        problem: watch::Sender::new(None),
        desired,
        clock,
        metrics,
    }));
    Ok(agent)
}

/// A host that has nothing to do.
struct MemoryHost;

#[async_trait]
impl PodHost for MemoryHost {
    fn track(&self, _: &Arc<Pod>) {}

    async fn prepare(
        &self,
        _: &Arc<Pod>,
        _: Option<CgroupDriver>,
        _: &PodObjects,
    ) -> Result<(), HostError> {
        Ok(())
    }

    async fn refresh(&self, _: &Arc<Pod>, _: &PodObjects) -> Result<(), HostError> {
        Ok(())
    }

    async fn sandbox_inputs(
        &self,
        pod: &Arc<Pod>,
        attempt: u32,
        _: Option<CgroupDriver>,
    ) -> Result<(SandboxInputs, Vec<HostWarning>), HostError> {
        let inputs = SandboxInputs {
            attempt,
            log_directory: format!("/logs/{}", pod.uid),
            hostname: pod.name.name.to_string(),
            dns: v1::DnsConfig::default(),
            cgroup_parent: format!("/pods/{}", pod.uid),
            resources: None,
            users: None,
        };
        Ok((inputs, Vec::new()))
    }

    async fn container_files(
        &self,
        _: &Arc<Pod>,
        _: &str,
        _: &[(String, String)],
        _: &[Box<str>],
    ) -> Result<ContainerFiles, HostError> {
        Ok(ContainerFiles::default())
    }

    async fn env_files(&self, _: &Arc<Pod>, _: &str) -> Result<EnvFiles, HostError> {
        Ok(EnvFiles::new())
    }

    fn resources(&self, _: &Pod, _: &Container) -> v1::LinuxContainerResources {
        v1::LinuxContainerResources::default()
    }

    fn env_context(&self, pod_ips: Vec<Box<str>>) -> EnvContext {
        EnvContext {
            pod_ips,
            ..EnvContext::default()
        }
    }

    fn seccomp(&self) -> (String, bool) {
        (String::new(), false)
    }

    fn thermal_throttle(&self) -> Vec<String> {
        Vec::new()
    }

    async fn logged_restart_count(&self, _: &Arc<Pod>, _: &str) -> u32 {
        0
    }

    async fn link_log(&self, _: &Arc<Pod>, _: &str, _: &ContainerId, _: u32) {}

    async fn remove_logs(&self, _: &Arc<Pod>, _: &str, _: &ContainerId, _: u32) {}

    async fn kill_leftovers(&self, _: &PodUid, _: &ContainerId) -> usize {
        0
    }

    async fn remove_volumes(&self, _: &PodUid) -> Result<(), HostError> {
        Ok(())
    }

    async fn clean_up(&self, _: &PodName, _: &PodUid) -> Result<(), HostError> {
        Ok(())
    }

    async fn log_tail(&self, _: &Pod, _: &str, _: u32, _: u64, _: usize) -> Vec<Box<str>> {
        Vec::new()
    }

    fn log_path(&self, pod: &Pod, container: &str, count: u32) -> PathBuf {
        format!("/logs/{}/{container}/{count}.log", pod.uid).into()
    }

    async fn pods_on_disk(&self) -> Vec<PodUid> {
        Vec::new()
    }
}

/// A network without probes.
struct NoNet;

#[async_trait]
impl NetProbe for NoNet {
    async fn probe(&self, _: &ProbeHandler, _: &str, _: Duration) -> ProbeReport {
        passed()
    }

    async fn hook(&self, _: &HttpGet, _: &str, _: Duration) -> ProbeReport {
        passed()
    }
}

fn passed() -> ProbeReport {
    ProbeReport {
        verdict: ProbeOutcome::Passed,
        output: String::new(),
        latency: Duration::ZERO,
    }
}

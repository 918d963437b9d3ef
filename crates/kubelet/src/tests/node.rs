//! A node for tests: an agent on a model runtime, its host, its manifests and its records.

mod inspect;
mod manifests;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use rubelet_api::pod::PodSource;
use rubelet_base::{ContainerId, PodName, PodUid, event_reason};
use rubelet_cri::Timeouts;
use rubelet_image_pull::{
    image_access::ImageAccess, images::PullParallelism, node_logins::NodeLogins,
    pull_rate::PullRate,
};
use rubelet_node_state::{
    clock::Clock,
    events::{EventType, Recorder},
    intents::IntentBoard,
    metrics::NodeMetrics,
    node_ips::NodeIps,
};
use rubelet_parity::event_text::find;
use rubelet_pleg::{PID_QUERY_IDLE, PlegSettings, processes::Processes};
use rubelet_pod_plan::{OperatorIntents, PlanSettings};
use rubelet_sim::Sim;
use rubelet_sources::desired::Desired;
use tempfile::TempDir;
use tokio::{
    sync::watch,
    task::yield_now,
    time::{Instant, sleep},
};

use super::{
    cluster::FakeCluster, fake_objects::FakeObjects, host::FakeHost, net::FakeNet, wire::Wire,
};
use crate::{
    agent::{Agent, AgentParts},
    eviction::EvictionSettings,
    image_collection::ImageCollectionSettings,
    local_storage::LocalStorageSettings,
    log_rotation::LogRotationSettings,
    node_allocatable::NodeCgroups,
    node_shutdown::ShutdownSettings,
    records::RecordWriter,
};

/// Longest time that a test waits for something.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// Manifests, a runtime, a host and records, and an agent that can be stopped and restarted. The
/// images `app:1` and `app:2` are present.
pub(super) struct Node {
    pub(super) sim: Sim,
    pub(super) wire: Wire,
    pub(super) host: Arc<FakeHost>,
    pub(super) net: Arc<FakeNet>,
    pub(super) cluster: Arc<FakeCluster>,
    pub(super) objects: Arc<FakeObjects>,
    desired: watch::Sender<Arc<Desired>>,
    /// UIDs by manifest name, also of removed manifests.
    uids: RefCell<BTreeMap<String, String>>,
    directory: TempDir,
    /// Directory of operator intents.
    intents: TempDir,
    /// Metrics of the agent that was started last.
    pub(super) metrics: Arc<NodeMetrics>,
    clock: Clock,
    /// How far the agent's wall clock was stepped, in seconds.
    stepped: Arc<AtomicI64>,
    /// How long the machine was suspended, in seconds.
    suspended: Arc<AtomicU64>,
    /// Wall time at the start of the simulation, in nanoseconds since 1970.
    sim_started: i64,
    /// Addresses of the node.
    pub(super) ips: watch::Sender<Arc<[IpAddr]>>,
    pulls: PullParallelism,
    /// Image pulls per second and their burst; off if 0.
    pub(super) pull_rate: (u32, u32),
    /// Whether the agent uses the runtime's events.
    pub(super) events: bool,
    /// Whether the agent watches processes, as with pidfds.
    pub(super) kernel: bool,
    /// Idle time before it queries PIDs.
    pub(super) pid_query_idle: Duration,
    /// Settings of log rotation; off if `None`.
    pub(super) log_rotation: Option<LogRotationSettings>,
    /// Settings of image garbage collection; off if `None`.
    pub(super) image_collection: Option<ImageCollectionSettings>,
    /// Settings of eviction; off if `None`.
    pub(super) eviction: Option<EvictionSettings>,
    /// Settings of graceful shutdowns; off if `None`.
    pub(super) shutdown: Option<ShutdownSettings>,
    /// The cgroups of the node; not limited if `None`.
    pub(super) node_cgroups: Option<Arc<dyn NodeCgroups>>,
    /// Settings of the limits of local storage; off if `None`.
    pub(super) local_storage: Option<LocalStorageSettings>,
    agent: Option<Agent>,
    /// Events of all agents.
    recorder: Recorder,
}

/// The processes of the model runtime, as the kernel shows them.
struct ModelProcesses(Sim);

impl Processes for ModelProcesses {
    fn end(&self, pid: u32, container: &ContainerId) -> Option<BoxFuture<'static, Option<i32>>> {
        let (sim, id) = (self.0.clone(), container.as_str().to_owned());
        sim.is_process_of(pid, &id)
            .then(|| Box::pin(async move { sim.wait_process_exit(&id).await }) as _)
    }
}

impl Node {
    /// A node whose agent has just started.
    pub(super) fn new() -> Self {
        let mut node = Self::stopped(PullParallelism::Unlimited, Timeouts::default());
        node.start();
        node
    }

    /// A node whose agent was not started yet.
    pub(super) fn stopped(pulls: PullParallelism, timeouts: Timeouts) -> Self {
        let sim = Sim::with_timeouts(timeouts);
        sim.add_image("app:1");
        sim.add_image("app:2");
        let start = Timestamp::from_nanosecond(sim.wall_now().into()).expect("a time of this age");
        let stepped = Arc::new(AtomicI64::new(0));
        let suspended = Arc::new(AtomicU64::new(0));
        let (steady, by) = (Clock::following_tokio(start), Arc::clone(&stepped));
        let asleep = Arc::clone(&suspended);
        let clock = Clock::telling(
            move || steady.now() + SignedDuration::from_secs(by.load(Ordering::Relaxed)),
            move || seconds(asleep.load(Ordering::Relaxed)),
        );
        // Records are flushed to disk; in memory that takes no time.
        let directory = || {
            let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
            directory.expect("a directory for temporary files")
        };
        let ready = Desired {
            ready: BTreeSet::from([PodSource::File]),
            ..Desired::default()
        };
        Self {
            sim_started: sim.wall_now(),
            wire: Wire::new(&sim),
            host: Arc::new(FakeHost::new(&sim)),
            sim,
            desired: watch::channel(Arc::new(ready)).0,
            uids: RefCell::default(),
            net: Arc::new(FakeNet::new()),
            cluster: Arc::default(),
            objects: Arc::default(),
            directory: directory(),
            intents: directory(),
            metrics: NodeMetrics::new(),
            recorder: Recorder::new(clock.clone()),
            clock,
            stepped,
            suspended,
            ips: watch::Sender::new(Arc::default()),
            pulls,
            pull_rate: (0, 0),
            events: true,
            kernel: false,
            pid_query_idle: PID_QUERY_IDLE,
            log_rotation: None,
            image_collection: None,
            eviction: None,
            shutdown: None,
            node_cgroups: None,
            local_storage: None,
            agent: None,
        }
    }

    /// Starts an agent.
    pub(super) fn start(&mut self) {
        assert!(self.agent.is_none(), "one agent at a time");
        self.metrics = NodeMetrics::new();
        let parts = AgentParts {
            runtime: Arc::new(self.wire.clone()),
            images: self.sim.images(),
            endpoint: "unix:///model".into(),
            runtime_name: "".into(),
            host: Arc::clone(&self.host) as _,
            clock: self.clock.clone(),
            records: RecordWriter::new(self.directory.path().to_owned()),
            node_name: "n".into(),
            node_ips: NodeIps::following(self.ips.subscribe()),
            plan: PlanSettings::default(),
            pleg: PlegSettings {
                relist_period: Duration::from_secs(1),
                events: self.events,
                pid_query_idle: self.pid_query_idle,
            },
            processes: self
                .kernel
                .then(|| Arc::new(ModelProcesses(self.sim.clone())) as _),
            pulls: self.pulls,
            pull_rate: PullRate::new(self.pull_rate.0, self.pull_rate.1),
            starts_at_once: 4,
            stops_at_once: 8,
            log_rotation: self.log_rotation,
            image_collection: self.image_collection.clone(),
            eviction: self.eviction.clone(),
            shutdown: self.shutdown.clone(),
            node_cgroups: self.node_cgroups.clone(),
            local_storage: self.local_storage.clone(),
            net: Arc::clone(&self.net) as _,
            intents: IntentBoard::new(self.intents.path().to_owned()),
            cluster: Arc::clone(&self.cluster) as _,
            objects: Arc::clone(&self.objects) as _,
            logins: NodeLogins::default(),
            image_access: ImageAccess::unchecked(),
            metrics: Arc::clone(&self.metrics),
        };
        let mut agent = Agent::start(parts, self.recorder.clone());
        agent.pleg().start_trace();
        agent.run_pods(vec![self.desired.subscribe()]);
        self.agent = Some(agent);
    }

    /// Kills the agent, as `kill -9` does: what it had in memory is lost, its calls are dropped.
    pub(super) async fn kill(&mut self) {
        drop(self.agent.take());
        // Aborted tasks end when they are next polled, and the tasks that they own after them.
        for _ in 0..10 {
            yield_now().await;
        }
    }

    /// Stops the agent gracefully.
    pub(super) async fn stop(&mut self) {
        let agent = self.agent.take().expect("an agent was started");
        agent.stop().await;
    }

    /// Kills the agent and starts another one.
    pub(super) async fn restart(&mut self) {
        self.kill().await;
        self.start();
    }

    pub(super) fn agent(&self) -> &Agent {
        self.agent.as_ref().expect("an agent was started")
    }

    /// Resolves with a message when the agent must stop.
    pub(super) async fn failed(&mut self) -> String {
        self.agent
            .as_mut()
            .expect("an agent was started")
            .failed()
            .await
    }

    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The wall time.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Steps the wall clock by so many seconds, which may be negative.
    pub(super) fn step_clock(&self, seconds: i64) {
        self.stepped.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Suspends the machine for this long: the wall clock goes on, timers do not.
    pub(super) fn suspend(&self, seconds: u32) {
        self.suspended.fetch_add(seconds.into(), Ordering::Relaxed);
        self.step_clock(seconds.into());
    }

    /// The file of a pod's record.
    pub(super) fn record(&self, name: &str) -> PathBuf {
        self.directory
            .path()
            .join(format!("{}.json", self.uid(name)))
    }

    pub(super) fn records(&self) -> &Path {
        self.directory.path()
    }
}

/// Checks that each event that was raised is in the table of events.
impl Drop for Node {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for (_, _, event) in self.recorder.board().list() {
            let warning = event.kind == EventType::Warning;
            if &*event.reason == event_reason::FAILED_MOUNT {
                // Its message comes from the fake host.
                continue;
            }
            let row = find(warning, &event.reason, &event.message);
            assert!(row.is_some(), "{} {:?}", event.reason, event.message);
        }
    }
}

/// Requests of operators.
impl Node {
    /// Changes the operator's intents for the pod of this manifest.
    pub(super) async fn ask(&self, name: &str, change: impl FnOnce(&mut OperatorIntents) + Send) {
        let uid = PodUid::from(self.uid(name));
        let asked = self.agent().intents().update(&uid, change).await;
        asked.expect("intents can be kept");
    }
}

/// Time.
impl Node {
    /// Time since the simulation started, as in the oracle's record.
    pub(super) fn uptime(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.sim.wall_now() - self.sim_started).expect("later"))
    }

    /// Waits until `condition` holds.
    pub(super) async fn until(&self, what: &str, condition: impl FnMut(&Self) -> bool) -> Duration {
        self.within(TIMEOUT, what, condition).await
    }

    /// Waits until `condition` holds, for at most `limit`. Returns how long it took.
    pub(super) async fn within(
        &self,
        limit: Duration,
        what: &str,
        mut condition: impl FnMut(&Self) -> bool,
    ) -> Duration {
        let began = Instant::now();
        let mut versions = self.agent().pods.versions();
        loop {
            if condition(self) {
                return began.elapsed();
            }
            assert!(
                began.elapsed() <= limit,
                "not within {limit:?}: {what}\n{}",
                self.failure_report()
            );
            // The longer the wait, the less precise the result must be.
            let pause = (began.elapsed() / 100).clamp(Duration::from_millis(10), seconds(1));
            tokio::select! {
                _ = versions.changed() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Waits until the pods of all manifests run.
    pub(super) async fn until_running(&self) -> Duration {
        let names: Vec<String> = self.names();
        let all = |node: &Self| names.iter().all(|name| node.is_running(name));
        self.until("all pods run", all).await
    }

    /// Waits until all pods but this one run.
    pub(super) async fn until_running_but(&self, name: &str) -> Duration {
        let names: Vec<String> = self.names();
        let all = |node: &Self| {
            let mut others = names.iter().filter(|other| *other != name);
            others.all(|name| node.is_running(name))
        };
        self.until("all other pods run", all).await
    }

    fn names(&self) -> Vec<String> {
        let desired = self.desired.borrow();
        let names = desired.pods.keys();
        names
            .map(|name| name.name.trim_end_matches("-n").to_owned())
            .collect()
    }

    /// The state of all pods and the last entries of the oracle, for a test that fails.
    pub(super) fn failure_report(&self) -> String {
        let oracle = self.sim.oracle().to_string();
        let lines: Vec<&str> = oracle
            .lines()
            .filter(|line| !line.contains(" Status") && !line.contains(" List"))
            .collect();
        let last = lines[lines.len().saturating_sub(40)..].join("\n");
        let last = last.replace(&"0".repeat(40), "");
        let mut pods = String::new();
        if let Some(agent) = &self.agent {
            for (uid, _, entry) in agent.pods.list() {
                let why: Vec<String> = entry.why.iter().map(ToString::to_string).collect();
                let status = &entry.status;
                let all = status.init_containers.iter().chain(&status.containers);
                let states: Vec<_> = all
                    .map(|container| (&container.name, &container.state))
                    .collect();
                pods.push_str(&format!("{uid} {:?} {states:?} {why:?}\n", status.phase));
            }
        }
        format!("{pods}{last}")
    }
}

fn pod_name(name: &str) -> PodName {
    PodName::new("default", &format!("{name}-n"))
}

/// A duration of `count` seconds.
pub(super) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

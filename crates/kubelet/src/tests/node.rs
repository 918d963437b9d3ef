//! A node for tests: an agent on a model runtime, its host, its manifests and its records.

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
use rubelet_api::{
    manifest::decode,
    parse::{ParseContext, parse},
    pod::{Deletion, Pod, PodSource},
    status::{ContainerState, ContainerStatus, Phase},
};
use rubelet_base::{ContainerId, PodName, PodUid, event_text::find};
use rubelet_cri::Timeouts;
use rubelet_pod_plan::{Intents, PlanSettings};
use rubelet_sim::{Instance, Sim, Subject, What};
use rubelet_sources::desired::Desired;
use tempfile::TempDir;
use tokio::{
    sync::watch,
    task::yield_now,
    time::{Instant, sleep},
};

use super::{cluster::FakeCluster, drawn::FakeObjects, host::FakeHost, net::FakeNet, wire::Wire};
use crate::{
    agent::{Agent, AgentParts},
    clock::Clock,
    events::{EventType, Recorder, Subject as EventSubject},
    image_access::ImageAccess,
    images::PullParallelism,
    intents::IntentBoard,
    keyring::NodeLogins,
    metrics::NodeMetrics,
    node_ips::NodeIps,
    objects::FAILED_MOUNT,
    pleg::{PlegSettings, REST},
    pod_task::PodEntry,
    processes::Processes,
    records::RecordWriter,
};

/// Longest time that a story waits for something.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Manifests, a runtime, a host and records, and now and then an agent. Images `app:1` and `app:2`
/// are there.
pub(super) struct Node {
    pub(super) sim: Sim,
    pub(super) wire: Wire,
    pub(super) host: Arc<FakeHost>,
    pub(super) net: Arc<FakeNet>,
    pub(super) cluster: Arc<FakeCluster>,
    pub(super) objects: Arc<FakeObjects>,
    desired: watch::Sender<Arc<Desired>>,
    /// UIDs by the names of manifests, also of those that are gone.
    uids: RefCell<BTreeMap<String, String>>,
    folder: TempDir,
    /// What operators asked for.
    intents: TempDir,
    /// Of the agent that was started last.
    pub(super) metrics: Arc<NodeMetrics>,
    clock: Clock,
    /// How far the agent's wall clock was stepped, in seconds.
    stepped: Arc<AtomicI64>,
    /// How long the machine was suspended, in seconds.
    slept: Arc<AtomicU64>,
    /// Wall time of the model's start, in nanoseconds since 1970.
    born: i64,
    /// Addresses of the machine.
    pub(super) ips: watch::Sender<Arc<[IpAddr]>>,
    pulls: PullParallelism,
    /// Whether the agent uses the runtime's events.
    pub(super) events: bool,
    /// Whether the agent asks the kernel for the ends of processes.
    pub(super) kernel: bool,
    /// How soon it asks for processes.
    pub(super) rest: Duration,
    agent: Option<Agent>,
    /// Events of all agents.
    recorder: Recorder,
}

/// The kernel below the model.
struct ModelProcesses(Sim);

impl Processes for ModelProcesses {
    fn end(&self, pid: u32, container: &ContainerId) -> Option<BoxFuture<'static, ()>> {
        let (sim, id) = (self.0.clone(), container.as_str().to_owned());
        sim.is_process_of(pid, &id)
            .then(|| Box::pin(async move { sim.process_ended(&id).await }) as _)
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
        let slept = Arc::new(AtomicU64::new(0));
        let (steady, by) = (Clock::following_tokio(start), Arc::clone(&stepped));
        let asleep = Arc::clone(&slept);
        let clock = Clock::telling(
            move || steady.now() + SignedDuration::from_secs(by.load(Ordering::Relaxed)),
            move || seconds(asleep.load(Ordering::Relaxed)),
        );
        // Records are flushed to disk; in memory that takes no time.
        let folder = || {
            let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
            folder.expect("a folder for temporary files")
        };
        let ready = Desired {
            ready: BTreeSet::from([PodSource::File]),
            ..Desired::default()
        };
        Self {
            born: sim.wall_now(),
            wire: Wire::new(&sim),
            host: Arc::new(FakeHost::new(&sim)),
            sim,
            desired: watch::channel(Arc::new(ready)).0,
            uids: RefCell::default(),
            net: Arc::new(FakeNet::new()),
            cluster: Arc::default(),
            objects: Arc::default(),
            folder: folder(),
            intents: folder(),
            metrics: NodeMetrics::new(),
            recorder: Recorder::new(clock.clone()),
            clock,
            stepped,
            slept,
            ips: watch::Sender::new(Arc::default()),
            pulls,
            events: true,
            kernel: false,
            rest: REST,
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
            records: RecordWriter::new(self.folder.path().to_owned()),
            node_name: "n".into(),
            node_ips: NodeIps::following(self.ips.subscribe()),
            plan: PlanSettings::default(),
            pleg: PlegSettings {
                relist_period: Duration::from_secs(1),
                events: self.events,
                rest: self.rest,
            },
            processes: self
                .kernel
                .then(|| Arc::new(ModelProcesses(self.sim.clone())) as _),
            pulls: self.pulls,
            starts_at_once: 4,
            stops_at_once: 8,
            net: Arc::clone(&self.net) as _,
            intents: IntentBoard::new(self.intents.path().to_owned()),
            cluster: Arc::clone(&self.cluster) as _,
            objects: Arc::clone(&self.objects) as _,
            logins: NodeLogins::default(),
            image_access: ImageAccess::unchecked(),
            metrics: Arc::clone(&self.metrics),
        };
        let mut agent = Agent::start(parts, self.recorder.clone());
        agent.run_pods(vec![self.desired.subscribe()]);
        self.agent = Some(agent);
    }

    /// Kills the agent, as `kill -9` does: what it had in memory is lost, its calls are dropped.
    pub(super) async fn kill(&mut self) {
        drop(self.agent.take());
        // Tasks that are aborted end when they are next looked at; theirs after them.
        for _ in 0..10 {
            yield_now().await;
        }
    }

    /// Stops the agent in order.
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

    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The wall time.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Somebody sets the wall clock: it goes on from so many seconds later, or earlier.
    pub(super) fn step_clock(&self, seconds: i64) {
        self.stepped.fetch_add(seconds, Ordering::Relaxed);
    }

    /// The machine was suspended for so long just now: the wall clock went on, timers did not.
    pub(super) fn suspend(&self, seconds: u32) {
        self.slept.fetch_add(seconds.into(), Ordering::Relaxed);
        self.step_clock(seconds.into());
    }

    /// The file of a pod's record.
    pub(super) fn record(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{}.json", self.uid(name)))
    }

    pub(super) fn records(&self) -> &Path {
        self.folder.path()
    }
}

/// Each event that was raised is one of the table.
impl Drop for Node {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for (_, _, event) in self.recorder.board().list() {
            let warning = event.kind == EventType::Warning;
            if &*event.reason == FAILED_MOUNT {
                // In the words of a made-up host.
                continue;
            }
            let row = find(warning, &event.reason, &event.message);
            assert!(row.is_some(), "{} {:?}", event.reason, event.message);
        }
    }
}

/// Manifests.
impl Node {
    /// There is a manifest of this name with this `spec`, in place of an older one. Returns the
    /// pod's UID.
    pub(super) fn want(&self, name: &str, spec: &str) -> String {
        self.want_with(name, "", spec)
    }

    /// The same with more `metadata`, such as `labels: {a: b}`.
    pub(super) fn want_with(&self, name: &str, metadata: &str, spec: &str) -> String {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, {metadata}}}\nspec: {{{spec}}}\n"
        );
        self.want_manifest(name, &text)
    }

    /// The same with the whole text of the manifest.
    pub(super) fn want_manifest(&self, name: &str, text: &str) -> String {
        let pod = self.parse(text);
        let uid = pod.uid.as_str().to_owned();
        self.uids.borrow_mut().insert(name.to_owned(), uid.clone());
        self.change(|desired| {
            desired.pods.insert(pod.name.clone(), Arc::new(pod));
        });
        uid
    }

    /// The pod of this manifest is one of the API server's from now on, or was changed there.
    pub(super) fn change_in_api(&self, name: &str, change: impl FnOnce(&mut Pod)) {
        self.change(|desired| {
            let pod = desired.pods.get_mut(&pod_name(name)).expect("such a pod");
            let pod = Arc::make_mut(pod);
            pod.source = PodSource::Api;
            change(pod);
        });
    }

    /// The API server wants the pod deleted within so many seconds.
    pub(super) fn delete_in_api(&self, name: &str, seconds: u64) {
        let (now, grace) = (self.clock.now(), Duration::from_secs(seconds));
        self.change_in_api(name, |pod| {
            pod.deletion = Some(Deletion {
                at: rubelet_pod_plan::after(now, grace),
                grace,
            });
        });
    }

    /// The pod as it is wanted.
    pub(super) fn wanted(&self, name: &str) -> Arc<Pod> {
        Arc::clone(&self.desired.borrow().pods[&pod_name(name)])
    }

    /// The manifest of this name is gone.
    pub(super) fn unwant(&self, name: &str) {
        self.change(|desired| {
            let gone = desired.pods.remove(&pod_name(name));
            assert!(gone.is_some(), "there was a manifest {name}");
        });
    }

    /// Whether the source of manifests could not be read yet.
    pub(super) fn set_waiting(&self, waiting: bool) {
        self.change(|desired| {
            desired.waiting_for = waiting.then_some(PodSource::Http).into_iter().collect();
        });
    }

    fn change(&self, change: impl FnOnce(&mut Desired)) {
        self.desired
            .send_modify(|desired| change(Arc::make_mut(desired)));
    }

    fn parse(&self, text: &str) -> Pod {
        let mut documents = decode(text);
        assert!(documents.pods.len() == 1, "one pod: {text}");
        let context = ParseContext {
            node_name: "n",
            source: PodSource::File,
            origin: "/manifests/pod.yaml",
            adopted_uid: None,
            now: self.clock.now(),
        };
        let raw = documents.pods.remove(0).expect("YAML of a pod");
        match parse(raw, &context) {
            Ok(pod) => pod,
            Err(errors) => panic!("{text}: {errors:?}"),
        }
    }

    /// The UID of the pod of this manifest.
    pub(super) fn uid(&self, name: &str) -> String {
        let uids = self.uids.borrow();
        uids.get(name).expect("a manifest of this name").clone()
    }
}

/// What operators ask.
impl Node {
    /// Asks something of the pod of this manifest.
    pub(super) async fn ask(&self, name: &str, change: impl FnOnce(&mut Intents) + Send) {
        let uid = PodUid::from(self.uid(name));
        let asked = self.agent().intents().update(&uid, change).await;
        asked.expect("intents can be kept");
    }
}

/// What the node says.
impl Node {
    /// What is published of a pod.
    pub(super) fn pod(&self, name: &str) -> Option<Arc<PodEntry>> {
        let rows = self.agent().pods.list();
        let name = pod_name(name);
        rows.into_iter()
            .map(|(_, _, entry)| entry)
            .find(|entry| entry.pod.name == name)
    }

    pub(super) fn phase(&self, name: &str) -> Option<Phase> {
        self.pod(name).map(|entry| entry.status.phase)
    }

    /// What is published of a container, if anything is.
    pub(super) fn container(&self, pod: &str, name: &str) -> Option<ContainerStatus> {
        let status = self.pod(pod)?.status.clone();
        let mut all = status.init_containers.into_iter().chain(status.containers);
        all.find(|container| *container.name == *name)
    }

    /// A container's state in few words: `Running`, `Waiting CrashLoopBackOff`,
    /// `Terminated Error 1`; empty if nothing is published.
    pub(super) fn state(&self, pod: &str, name: &str) -> String {
        match self.container(pod, name).map(|container| container.state) {
            None => String::new(),
            Some(ContainerState::Running { .. }) => "Running".to_owned(),
            Some(ContainerState::Waiting { reason, .. }) => format!("Waiting {reason}"),
            Some(ContainerState::Terminated(end)) => {
                format!("Terminated {} {}", end.reason, end.exit_code)
            }
        }
    }

    /// True if the pod and all its containers are published as running, and they do run.
    pub(super) fn is_running(&self, name: &str) -> bool {
        let Some(entry) = self.pod(name) else {
            return false;
        };
        entry.status.phase == Phase::Running
            && entry.status.containers.iter().all(|container| {
                container.ready
                    && self
                        .sim
                        .running(entry.pod.uid.as_str(), &container.name)
                        .is_some()
            })
    }

    /// Events about a pod and its containers, oldest first, as `REASON MESSAGE`.
    pub(super) fn events(&self, name: &str) -> Vec<String> {
        let name = pod_name(name);
        let mut events: Vec<_> = self.recorder.board().list();
        events.sort_by_key(|(_, version, event)| (event.first, *version));
        let about = events.into_iter().filter(|(_, _, event)| {
            matches!(&event.subject, EventSubject::Pod { name: of, .. } if *of == name)
        });
        about
            .map(|(_, _, event)| format!("{} {}", event.reason, event.message))
            .collect()
    }

    /// True if nothing is left of the pod with this UID: not in the runtime, not on the host, not
    /// in the records and not in what is published.
    pub(super) fn is_gone(&self, uid: &str) -> bool {
        self.sim.sandboxes(uid).is_empty()
            && self.containers(uid).is_empty()
            && !self.host.has_folder(uid)
            && self.agent().pods.get(&PodUid::from(uid)).is_none()
    }

    /// A pod's containers in the runtime, oldest first.
    pub(super) fn containers(&self, uid: &str) -> Vec<Instance> {
        let all = self.sim.containers().into_iter();
        all.filter(|container| container.pod_uid == uid).collect()
    }
}

/// What the model says.
impl Node {
    /// When containers of this pod and name were started, since the model started.
    pub(super) fn start_times(&self, uid: &str, name: &str) -> Vec<Duration> {
        let oracle = self.sim.oracle();
        let starts = oracle.entries().iter().filter(
            |entry| matches!(&entry.what, What::ContainerStarted(of) if of.pod_uid == uid && of.name == name),
        );
        starts.map(|entry| entry.at).collect()
    }

    /// When containers of this pod and name ended, since the model started.
    pub(super) fn exit_times(&self, uid: &str, name: &str) -> Vec<Duration> {
        let oracle = self.sim.oracle();
        let ends = oracle.entries().iter().filter(
            |entry| matches!(&entry.what, What::ContainerExited { instance: of, .. } if of.pod_uid == uid && of.name == name),
        );
        ends.map(|entry| entry.at).collect()
    }

    /// When containers of this pod and name were sent SIGTERM, since the model started.
    pub(super) fn term_times(&self, uid: &str, name: &str) -> Vec<Duration> {
        let oracle = self.sim.oracle();
        let terms = oracle.entries().iter().filter(
            |entry| matches!(&entry.what, What::ContainerTermed(of) if of.pod_uid == uid && of.name == name),
        );
        terms.map(|entry| entry.at).collect()
    }

    /// Kills the running container of this pod and name from outside.
    pub(super) fn kill_container(&self, uid: &str, name: &str, code: i32) {
        let id = self.sim.running(uid, name).expect("it runs");
        self.sim.kill_container(&id, code, "");
    }

    /// Nothing of this pod ever ran twice at the same time.
    pub(super) fn assert_never_twice(&self, uid: &str) {
        let oracle = self.sim.oracle();
        assert!(
            oracle.max_ready_sandboxes(uid) <= 1,
            "more than one sandbox was ready:\n{oracle}"
        );
        let names: BTreeSet<_> = oracle
            .entries()
            .iter()
            .filter_map(|entry| match &entry.what {
                What::ContainerStarted(of) if of.pod_uid == uid => Some(of.name.clone()),
                _ => None,
            })
            .collect();
        for name in names {
            assert!(
                oracle.max_simultaneous(uid, &name) <= 1,
                "{name} ran more than once at a time:\n{oracle}"
            );
        }
    }

    /// Calls of one RPC that were made, about anything.
    pub(super) fn calls(&self, call: &str) -> usize {
        self.sim.oracle().count(call, &Subject::any())
    }
}

/// Time.
impl Node {
    /// Time since the model started, as its oracle counts.
    pub(super) fn uptime(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.sim.wall_now() - self.born).expect("later"))
    }

    /// Waits until `condition` holds.
    pub(super) async fn until(&self, what: &str, condition: impl FnMut(&Self) -> bool) -> Duration {
        self.within(PATIENCE, what, condition).await
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
                self.account()
            );
            // The longer it takes, the less exactly it has to be known.
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

    /// The same but for this one.
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

    /// What happened last, for a test that fails.
    pub(super) fn account(&self) -> String {
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

/// So many seconds.
pub(super) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

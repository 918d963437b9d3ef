//! Eviction on a model machine: its memory is what its running pods leave.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use rubelet_api::{
    pod::{Pod, PodSource},
    status::Phase,
};
use rubelet_base::PodUid;
use rubelet_node_plan::eviction::{
    EvictionPolicy, EvictionTexts, FileSystem, FileSystemLayout, PodUsage, ResourceLevel,
    ResourceLevels, StarvedResource,
};
use rubelet_sim::{Behavior, EntryKind, Sim};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{
    metrics::value,
    node::{Node, seconds},
};
use crate::{
    eviction::{
        EvictionSettings, FileSystemLevels, LevelSource, MemoryAlarm, PodUsageSource,
        RuntimeDirectories,
    },
    image_collection::{ImageCollectionPolicy, ImageCollectionSettings},
};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";
const MIB: u64 = 1 << 20;

/// A machine with 1000 MiB of memory and 1000 MiB of disk.
struct Machine {
    sim: Sim,
    /// Memory in MiB by pod, while it runs.
    uses: Mutex<BTreeMap<PodUid, u64>>,
    /// Time after the end of a container until the kernel has freed its memory.
    frees_after: Mutex<Duration>,
    /// When the simulation started.
    began: Instant,
    /// MiB of the disk that are free.
    disk: Mutex<u64>,
    /// A pod whose containers take 300 MiB of the disk for as long as the runtime has them.
    rubbish: Mutex<Option<PodUid>>,
    /// How often pods were measured.
    measured: Mutex<usize>,
    /// Rings when the kernel reports that processes wait for memory.
    alarm: Notify,
}

impl Machine {
    fn used(&self, uid: &PodUid) -> u64 {
        let uses = self.uses.lock();
        let holds = self.sim.running(uid.as_str(), "app").is_some() || self.ended_just_now(uid);
        let used = uses.get(uid).filter(|_| holds);
        used.map_or(0, |mib| mib * MIB)
    }
}

impl Machine {
    fn ended_just_now(&self, uid: &PodUid) -> bool {
        let since = self
            .began
            .elapsed()
            .saturating_sub(*self.frees_after.lock());
        let oracle = self.sim.oracle();
        oracle.entries().iter().any(|entry| {
            let of = match &entry.what {
                EntryKind::ContainerExited { instance, .. } => instance,
                _ => return false,
            };
            of.pod_uid == uid.as_str() && entry.at > since
        })
    }
}

impl LevelSource for Machine {
    fn memory_and_pids(&self) -> ResourceLevels {
        let pods: Vec<PodUid> = self.uses.lock().keys().cloned().collect();
        let used: u64 = pods.iter().map(|uid| self.used(uid)).sum();
        ResourceLevels {
            memory: Some(ResourceLevel {
                available: (1000 * MIB).saturating_sub(used),
                capacity: 1000 * MIB,
            }),
            ..ResourceLevels::default()
        }
    }

    fn file_systems(&self, directories: &RuntimeDirectories) -> FileSystemLevels {
        let removed = self
            .sim
            .oracle()
            .entries()
            .iter()
            .any(|entry| matches!(entry.what, EntryKind::ImageRemoved(_)));
        let is_clean = self.rubbish.lock().as_ref().is_some_and(|uid| {
            let containers = self.sim.containers();
            !containers.iter().any(|one| one.pod_uid == uid.as_str())
        });
        // An unused image takes 300 MiB.
        let free = *self.disk.lock() + if removed || is_clean { 300 } else { 0 };
        let file_system = FileSystem {
            bytes: ResourceLevel {
                available: free * MIB,
                capacity: 1000 * MIB,
            },
            inodes: ResourceLevel::default(),
        };
        let levels = ResourceLevels {
            nodefs: Some(file_system),
            imagefs: directories.images.is_some().then_some(file_system),
            ..ResourceLevels::default()
        };
        (levels, FileSystemLayout::Single)
    }
}

#[async_trait]
impl PodUsageSource for Machine {
    async fn usage(&self, pods: Vec<Arc<Pod>>, _: StarvedResource) -> HashMap<PodUid, PodUsage> {
        *self.measured.lock() += 1;
        let of = |pod: &Arc<Pod>| {
            let usage = PodUsage {
                memory: self.used(&pod.uid),
                ..PodUsage::default()
            };
            (pod.uid.clone(), usage)
        };
        pods.iter().map(of).collect()
    }
}

#[async_trait]
impl MemoryAlarm for Machine {
    async fn rings(&self, _: Option<u64>) {
        self.alarm.notified().await;
    }
}

/// A node with eviction.
struct Evicting {
    node: Node,
    machine: Arc<Machine>,
}

impl Evicting {
    /// A node with these hard and soft thresholds of memory, and 100 MiB of disk; soft ones have 30 s.
    async fn new(hard: &str, soft: &str) -> Self {
        let texts = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let given = pairs.iter().filter(|(_, text)| !text.is_empty());
            given
                .map(|&(key, text)| (key.to_owned(), text.to_owned()))
                .collect()
        };
        let texts = EvictionTexts {
            hard: &texts(&[("memory.available", hard), ("nodefs.available", "100Mi")]),
            soft: &texts(&[("memory.available", soft)]),
            soft_grace: &texts(&[("memory.available", "30s")]),
            min_reclaim: &BTreeMap::new(),
            enforces_pods: false,
        };
        let policy = EvictionPolicy::parse(&texts, seconds(300), seconds(20)).unwrap();
        let began = Instant::now();
        let mut node = Node::new();
        node.kill().await;
        let machine = Arc::new(Machine {
            sim: node.sim.clone(),
            uses: Mutex::default(),
            frees_after: Mutex::default(),
            began,
            disk: Mutex::new(500),
            rubbish: Mutex::default(),
            measured: Mutex::default(),
            alarm: Notify::new(),
        });
        node.eviction = Some(EvictionSettings {
            policy,
            levels: Arc::clone(&machine) as _,
            pods: Arc::clone(&machine) as _,
            alarm: Some(Arc::clone(&machine) as _),
        });
        node.image_collection = Some(ImageCollectionSettings {
            policy: ImageCollectionPolicy {
                high_percent: 100,
                low_percent: 80,
                min_age: Duration::ZERO,
                max_age: None,
            },
            disk: Arc::new(|_| panic!("the policy is off")),
        });
        node.start();
        Self { node, machine }
    }

    /// Runs a pod of the API server that uses so much memory once it runs.
    async fn run(&self, name: &str, spec: &str, mib: u64) -> PodUid {
        let uid = PodUid::from(self.node.apply(name, &format!("{spec}, {APP}")));
        self.node.change_in_api(name, |_| {});
        self.node
            .until("it runs", |node| node.is_running(name))
            .await;
        self.machine.uses.lock().insert(uid.clone(), mib);
        uid
    }

    async fn until_failed(&self, name: &str) -> Duration {
        self.node
            .until("the pod has failed", |node| {
                node.phase(name) == Some(Phase::Failed)
            })
            .await
    }

    fn threshold_events(&self) -> usize {
        let events = self.node.recorder().board().list();
        let of_reason = events
            .iter()
            .filter(|(_, _, event)| &*event.reason == "EvictionThresholdMet");
        of_reason.count()
    }
}

#[tokio::test(start_paused = true)]
async fn without_memory_the_pod_that_uses_most_goes_and_only_that_one() {
    let on = Evicting::new("100Mi", "").await;
    let term = Behavior::runs().ignoring_term();
    on.node.sim.on_image("app:1", term);
    on.run("small", "terminationGracePeriodSeconds: 30", 100)
        .await;
    sleep(seconds(3600)).await;
    assert_eq!(*on.machine.measured.lock(), 0, "nothing is short");
    let large = on
        .run("large", "terminationGracePeriodSeconds: 30", 850)
        .await;
    let took = on.until_failed("large").await;
    assert!(took <= seconds(15), "{took:?}");
    let [term, end] = [
        on.node.term_times(large.as_str(), "app"),
        on.node.exit_times(large.as_str(), "app"),
    ];
    // The shortest time that any container gets is 2 s.
    assert_eq!(end[0] - term[0], seconds(2));
    let status = on.node.pod("large").unwrap().status.clone();
    assert_eq!(&*status.reason, "Evicted");
    assert_eq!(
        &*status.message,
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
    );
    let condition = status.condition("DisruptionTarget").unwrap();
    assert_eq!(&*condition.reason, "TerminationByKubelet");
    assert_eq!(condition.message, status.message);
    assert!(on.node.agent().pressure.borrow().memory);
    assert_eq!(on.threshold_events(), 1);
    let events = on.node.events("large");
    assert!(
        events.contains(&format!("Evicted {}", status.message)),
        "{events:?}"
    );
    let count = value(
        &on.node,
        "kubelet_evictions{eviction_signal=\"memory.available\"}",
    );
    assert_eq!(count, 1.0);
    sleep(seconds(600)).await;
    assert!(on.node.is_running("small"));
    assert_eq!(on.node.phase("large"), Some(Phase::Failed));
    let starts = on.node.sim.oracle().starts(large.as_str(), "app");
    assert_eq!(starts, 1, "it does not start again");
    assert!(!on.node.agent().pressure.borrow().memory, "after 300 s");
}

#[tokio::test(start_paused = true)]
async fn memory_that_the_kernel_frees_a_moment_later_costs_no_second_pod() {
    let on = Evicting::new("100Mi", "").await;
    *on.machine.frees_after.lock() = Duration::from_millis(800);
    on.run("small", "terminationGracePeriodSeconds: 1", 100)
        .await;
    on.run("large", "terminationGracePeriodSeconds: 1", 850)
        .await;
    on.until_failed("large").await;
    sleep(seconds(600)).await;
    assert!(on.node.is_running("small"));
    assert_eq!(on.threshold_events(), 1);
}

#[tokio::test(start_paused = true)]
async fn pods_go_one_by_one_until_enough_is_free() {
    let on = Evicting::new("100Mi", "").await;
    on.run("first", "priority: 1", 300).await;
    on.run("second", "priority: 2", 300).await;
    on.run("third", "priority: 3", 200).await;
    let late = on.run("fourth", "priority: 4", 800).await;
    on.until_failed("second").await;
    let took = on.until_failed("first").await;
    assert!(
        took <= seconds(5),
        "a pod that has ended is not waited for: {took:?}"
    );
    sleep(seconds(100)).await;
    assert_eq!(on.node.phase("third"), Some(Phase::Failed));
    assert_eq!(on.node.phase("fourth"), Some(Phase::Running));
    on.machine.uses.lock().insert(late, 950);
    on.until_failed("fourth").await;
}

#[tokio::test(start_paused = true)]
async fn a_soft_threshold_waits_and_leaves_the_pod_time() {
    let on = Evicting::new("", "200Mi").await;
    on.node
        .sim
        .on_image("app:1", Behavior::runs().ignoring_term());
    let web = on
        .run("web", "terminationGracePeriodSeconds: 60", 850)
        .await;
    sleep(seconds(35)).await;
    assert!(on.node.agent().pressure.borrow().memory);
    assert_eq!(on.node.phase("web"), Some(Phase::Running));
    on.until_failed("web").await;
    let [term, end] = [
        on.node.term_times(web.as_str(), "app"),
        on.node.exit_times(web.as_str(), "app"),
    ];
    assert_eq!(end[0] - term[0], seconds(20), "evictionMaxPodGracePeriod");
}

#[tokio::test(start_paused = true)]
async fn static_and_critical_pods_stay() {
    let on = Evicting::new("100Mi", "").await;
    let name = "manifest";
    let uid = PodUid::from(on.node.apply(name, APP));
    on.node.until_running().await;
    on.machine.uses.lock().insert(uid, 600);
    assert_eq!(on.node.desired_pod(name).source, PodSource::File);
    on.run(
        "critical",
        "priorityClassName: system-node-critical, priority: 2000001000",
        350,
    )
    .await;
    sleep(seconds(600)).await;
    assert!(on.node.is_running(name) && on.node.is_running("critical"));
    assert!(on.threshold_events() > 0);
    assert!(on.node.agent().pressure.borrow().memory);
}

#[tokio::test(start_paused = true)]
async fn unused_images_go_before_any_pod() {
    let on = Evicting::new("100Mi", "").await;
    on.run("web", "priority: 1", 100).await;
    *on.machine.disk.lock() = 50;
    on.node
        .until("the unused image is removed", |node| {
            let oracle = node.sim.oracle();
            let mut entries = oracle.entries().iter();
            entries.any(|entry| matches!(entry.what, EntryKind::ImageRemoved(_)))
        })
        .await;
    sleep(seconds(60)).await;
    assert!(on.node.is_running("web"));
    assert!(on.node.agent().pressure.borrow().disk);
    assert_eq!(*on.machine.measured.lock(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_continues_after_a_restart_of_the_agent() {
    let mut on = Evicting::new("100Mi", "").await;
    on.node
        .sim
        .on_image("app:1", Behavior::runs().exiting_on_term(seconds(1), 0));
    let web = on
        .run("web", "terminationGracePeriodSeconds: 30", 950)
        .await;
    on.node
        .until("it is told to stop", |node| {
            !node.term_times(web.as_str(), "app").is_empty()
        })
        .await;
    on.node.restart().await;
    on.until_failed("web").await;
    assert_eq!(&*on.node.pod("web").unwrap().status.reason, "Evicted");
    sleep(seconds(600)).await;
    assert_eq!(on.node.sim.oracle().starts(web.as_str(), "app"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_killed_does_not_save_the_others() {
    let on = Evicting::new("100Mi", "").await;
    let stuck = on.run("stuck", "priority: 1", 700).await;
    let hang = on
        .node
        .sim
        .hang("StopContainer", rubelet_sim::Subject::pod(stuck.as_str()));
    on.run("other", "priority: 2", 250).await;
    on.until_failed("other").await;
    assert_ne!(on.node.phase("stuck"), Some(Phase::Failed));
    let events = on.node.events("stuck");
    assert!(
        events
            .iter()
            .any(|event| event.starts_with("ExceededGracePeriod ")),
        "{events:?}"
    );
    drop(hang);
}

#[tokio::test(start_paused = true)]
async fn the_kernels_alarm_is_not_waited_for_until_the_next_measurement() {
    let on = Evicting::new("100Mi", "").await;
    let web = on.run("web", "priority: 1", 100).await;
    sleep(seconds(60)).await;
    on.machine.uses.lock().insert(web.clone(), 950);
    on.machine.alarm.notify_one();
    let took = on
        .node
        .until("the pod is told to stop", |node| {
            !node.term_times(web.as_str(), "app").is_empty()
        })
        .await;
    assert!(took < Duration::from_millis(200), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn dead_containers_go_before_any_pod_and_their_pods_stay_as_they_ended() {
    let on = Evicting::new("100Mi", "").await;
    let job = "restartPolicy: Never, containers: [{name: app, image: 'app:2'}]";
    on.node
        .sim
        .on_image("app:2", Behavior::exits(seconds(1), 3));
    let job = PodUid::from(on.node.apply("job", job));
    on.node.change_in_api("job", |_| {});
    on.until_failed("job").await;
    on.run("web", "priority: 1", 100).await;
    assert_eq!(on.node.containers(job.as_str()).len(), 1);
    *on.machine.rubbish.lock() = Some(job.clone());
    *on.machine.disk.lock() = 50;
    on.node
        .until("the dead container is removed", |node| {
            node.containers(job.as_str()).is_empty()
        })
        .await;
    sleep(seconds(600)).await;
    let status = on.node.pod("job").unwrap().status.clone();
    assert_eq!(status.phase, Phase::Failed);
    assert_eq!(on.node.state("job", "app"), "Terminated Error 3");
    assert_eq!(on.node.sim.oracle().starts(job.as_str(), "app"), 1);
    assert!(on.node.is_running("web"));
}

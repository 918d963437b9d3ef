//! Limits of local storage on a model machine whose disk is what its pods leave.

use std::{
    collections::{BTreeMap, HashMap},
    future::pending,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use rubelet_api::{
    pod::{Pod, PodSource},
    status::Phase,
    volume::{Medium, Volume, VolumeSource},
};
use rubelet_base::PodUid;
use rubelet_node_plan::eviction::{
    DiskUsage, FileSystem, FileSystemLayout, PodUsage, ResourceLevel, ResourceLevels,
    StarvedResource, VolumeUsage,
};
use tokio::time::{Instant, sleep};

use super::{
    metrics::value,
    node::{Node, seconds},
};
use crate::{
    eviction::{FileSystemLevels, LevelSource, PodUsageSource, RuntimeDirectories},
    local_storage::LocalStorageSettings,
};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DISK: u64 = 100_000 * GIB;

/// What a pod writes to its volume.
#[derive(Clone, Copy)]
struct Writer {
    since: Instant,
    /// Bytes in a second.
    rate: u64,
}

impl Writer {
    fn written(&self) -> u64 {
        let millis = u64::try_from(self.since.elapsed().as_millis()).unwrap();
        self.rate * millis / 1000
    }
}

/// A machine with a large disk.
#[derive(Default)]
struct Machine {
    writers: Mutex<BTreeMap<PodUid, Writer>>,
    /// A pod whose files do not respond.
    hangs: Mutex<Option<PodUid>>,
    /// How often pods were measured, and the free space was read.
    measured: Mutex<usize>,
    looks: Mutex<usize>,
}

impl LevelSource for Machine {
    fn memory_and_pids(&self) -> ResourceLevels {
        ResourceLevels::default()
    }

    fn file_systems(&self, _: &RuntimeDirectories) -> FileSystemLevels {
        *self.looks.lock() += 1;
        let written: u64 = self.writers.lock().values().map(Writer::written).sum();
        let bytes = ResourceLevel {
            available: DISK - written,
            capacity: DISK,
        };
        let file_system = FileSystem {
            bytes,
            inodes: ResourceLevel::default(),
        };
        let levels = ResourceLevels {
            nodefs: Some(file_system),
            ..ResourceLevels::default()
        };
        (levels, FileSystemLayout::Single)
    }
}

#[async_trait]
impl PodUsageSource for Machine {
    async fn usage(
        &self,
        pods: Vec<Arc<Pod>>,
        resource: StarvedResource,
    ) -> HashMap<PodUid, PodUsage> {
        assert_eq!(resource, StarvedResource::EphemeralStorage);
        *self.measured.lock() += 1;
        let hangs = self.hangs.lock().clone();
        if pods.iter().any(|pod| Some(&pod.uid) == hangs.as_ref()) {
            return pending().await;
        }
        let writers = self.writers.lock();
        let of = |pod: &Arc<Pod>| {
            let bytes = writers.get(&pod.uid).map_or(0, Writer::written);
            let data = VolumeUsage {
                name: "data".into(),
                usage: DiskUsage { bytes, inodes: 1 },
            };
            let usage = PodUsage {
                volumes: vec![data],
                ..PodUsage::default()
            };
            (pod.uid.clone(), usage)
        };
        pods.iter().map(of).collect()
    }
}

/// A node with limits of local storage.
struct LimitingNode {
    node: Node,
    machine: Arc<Machine>,
}

impl LimitingNode {
    async fn new() -> Self {
        let mut node = Node::new();
        node.kill().await;
        let machine = Arc::new(Machine::default());
        node.local_storage = Some(LocalStorageSettings {
            levels: Arc::clone(&machine) as _,
            pods: Arc::clone(&machine) as _,
        });
        node.start();
        Self { node, machine }
    }

    /// Runs a pod with an `emptyDir` of this size, which nobody writes to.
    async fn run(&self, name: &str, source: PodSource, limit: Option<u64>) -> PodUid {
        let uid = PodUid::from(self.node.apply(name, APP));
        self.node.change_in_api(name, |pod| {
            pod.source = source;
            pod.spec.volumes.push(Volume {
                name: "data".into(),
                source: VolumeSource::EmptyDir {
                    medium: Medium::Disk,
                    size_limit: limit,
                },
            });
        });
        self.node
            .until("it runs", |node| node.is_running(name))
            .await;
        uid
    }

    fn writes(&self, uid: &PodUid, rate: u64) {
        let since = Instant::now();
        let writer = Writer { since, rate };
        self.machine.writers.lock().insert(uid.clone(), writer);
    }

    async fn until_failed(&self, name: &str) -> Duration {
        self.node
            .until("the pod has failed", |node| {
                node.phase(name) == Some(Phase::Failed)
            })
            .await
    }

    fn measured(&self) -> usize {
        *self.machine.measured.lock()
    }

    fn looks(&self) -> usize {
        *self.machine.looks.lock()
    }
}

#[tokio::test(start_paused = true)]
async fn the_pod_that_exceeds_its_limit_is_evicted_and_its_neighbours_stay() {
    let on = LimitingNode::new().await;
    let greedy = on.run("greedy", PodSource::Api, Some(GIB)).await;
    let modest = on.run("modest", PodSource::Api, Some(GIB)).await;
    let free = on.run("free", PodSource::Api, None).await;
    on.writes(&greedy, GIB);
    on.writes(&modest, MIB);
    on.writes(&free, GIB);
    on.until_failed("greedy").await;
    // It has written for a second after its limit, and less than 2 s while it was being stopped.
    let written = on.machine.writers.lock()[&greedy].written();
    assert!(written < 6 * GIB, "{} MiB", written / MIB);
    let status = on.node.pod("greedy").unwrap().status.clone();
    assert_eq!(&*status.reason, "Evicted");
    let message = "Usage of EmptyDir volume \"data\" exceeds the limit \"1Gi\". ";
    assert_eq!(&*status.message, message);
    assert_eq!(status.condition("DisruptionTarget"), None);
    let events = on.node.events("greedy");
    assert!(events.contains(&format!("Evicted {message}")), "{events:?}");
    let line = "kubelet_evictions{eviction_signal=\"emptydirfs.limit\"}";
    assert_eq!(value(&on.node, line), 1.0);
    sleep(seconds(600)).await;
    assert!(on.node.is_running("modest") && on.node.is_running("free"));
    assert_eq!(value(&on.node, line), 1.0, "once");
    // At 1 MiB a second, its limit is reached after 1024 s.
    on.until_failed("modest").await;
    assert!(on.node.is_running("free"));
    let written = on.machine.writers.lock()[&modest].written();
    assert!(written < GIB + 90 * MIB, "{} MiB", written / MIB);
}

#[tokio::test(start_paused = true)]
async fn where_no_pod_has_a_limit_nothing_is_measured() {
    let on = LimitingNode::new().await;
    let free = on.run("free", PodSource::Api, None).await;
    // Static pods are never evicted.
    let fixed = on.run("fixed", PodSource::File, Some(MIB)).await;
    on.writes(&free, GIB);
    on.writes(&fixed, GIB);
    sleep(seconds(60)).await;
    assert_eq!((on.measured(), on.looks()), (0, 0));
    assert!(on.node.is_running("fixed"));
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_written_the_free_space_is_read_and_pods_are_measured_each_minute() {
    let on = LimitingNode::new().await;
    on.run("web", PodSource::Api, Some(100 * GIB)).await;
    sleep(seconds(60)).await;
    let (measured, looks) = (on.measured(), on.looks());
    sleep(seconds(600)).await;
    let (measured, looks) = (on.measured() - measured, on.looks() - looks);
    assert!((9..=11).contains(&measured), "{measured}");
    assert!((60..=80).contains(&looks), "{looks}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_files_hang_does_not_protect_another_one() {
    let on = LimitingNode::new().await;
    let hangs = on.run("hangs", PodSource::Api, Some(GIB)).await;
    *on.machine.hangs.lock() = Some(hangs);
    sleep(seconds(120)).await;
    let before = on.measured();
    sleep(seconds(1200)).await;
    assert_eq!(on.measured(), before, "it is measured once");
    let greedy = on.run("greedy", PodSource::Api, Some(GIB)).await;
    on.writes(&greedy, GIB);
    on.until_failed("greedy").await;
    assert!(on.node.is_running("hangs"));
}

//! Tests of `collector`.

use std::{
    fs,
    future::pending,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use jiff::Timestamp;
use rubelet_api::{
    manifest::decode,
    parse::{ParseContext, parse},
    pod::PodSource,
    status::{ContainerState, ContainerStatus, Phase, PodStatus},
};
use rubelet_cgroup_plan::CgroupDriver;
use rubelet_cri::{CriError, CriResult, v1};
use rubelet_node_plan::CgroupRoot;
use rubelet_node_state::{board::Board, pod_board::PodEntry};

use super::{answer::PATIENCE, *};
use crate::target::{PodDirectories, VolumeDirectory};

const NOW: &str = "2026-03-01T12:00:00Z";

/// How a runtime answers.
#[derive(Clone, Copy, PartialEq)]
enum Answers {
    Never,
    WithContainers,
    Unimplemented,
}

/// A runtime whose disk is this one.
struct FakeImages;

#[async_trait]
impl ImageService for FakeImages {
    async fn image_fs_info(&self, _: v1::ImageFsInfoRequest) -> CriResult<v1::ImageFsInfoResponse> {
        let usage = v1::FilesystemUsage {
            fs_id: Some(v1::FilesystemIdentifier {
                mountpoint: "/".to_owned(),
            }),
            used_bytes: Some(v1::UInt64Value { value: 5 }),
            ..Default::default()
        };
        Ok(v1::ImageFsInfoResponse {
            image_filesystems: vec![usage],
            container_filesystems: Vec::new(),
        })
    }
}

struct FakeRuntime {
    answers: Answers,
    /// How often it was asked for pods.
    asked: AtomicUsize,
    /// How often it was asked for containers. Their layers grow by a byte each time.
    asked_for_containers: AtomicUsize,
}

#[async_trait]
impl RuntimeService for FakeRuntime {
    async fn list_pod_sandbox_stats(
        &self,
        _: v1::ListPodSandboxStatsRequest,
    ) -> CriResult<v1::ListPodSandboxStatsResponse> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match self.answers {
            Answers::Never => pending().await,
            _ => Err(CriError::unimplemented("ListPodSandboxStats")),
        }
    }

    async fn list_container_stats(
        &self,
        _: v1::ListContainerStatsRequest,
    ) -> CriResult<v1::ListContainerStatsResponse> {
        if self.answers == Answers::Unimplemented {
            return Err(CriError::unimplemented("ListContainerStats"));
        }
        if self.answers == Answers::Never {
            pending::<()>().await;
        }
        let before = self.asked_for_containers.fetch_add(1, Ordering::Relaxed);
        let stats = v1::ContainerStats {
            attributes: Some(v1::ContainerAttributes {
                id: "c1".to_owned(),
                ..Default::default()
            }),
            cpu: Some(v1::CpuUsage {
                timestamp: 1,
                usage_core_nano_seconds: Some(v1::UInt64Value { value: 77 }),
                ..Default::default()
            }),
            writable_layer: Some(v1::FilesystemUsage {
                used_bytes: Some(v1::UInt64Value {
                    value: 9 + before as u64,
                }),
                ..Default::default()
            }),
            ..Default::default()
        };
        Ok(v1::ListContainerStatsResponse { stats: vec![stats] })
    }
}

/// A node with one pod, whose files are in a directory.
struct TestNode {
    root: tempfile::TempDir,
    runtime: Arc<FakeRuntime>,
    collector: StatsCollector,
}

impl TestNode {
    fn new(answers: Answers, source: UsageSource) -> Self {
        let root = tempfile::Builder::new()
            .prefix("rbt-stats-")
            .tempdir()
            .unwrap();
        let runtime = Arc::new(FakeRuntime {
            answers,
            asked: AtomicUsize::default(),
            asked_for_containers: AtomicUsize::default(),
        });
        let cgroups = root.path().join("cgroup");
        let pods = Board::new();
        let entry = entry();
        pods.set(entry.pod.uid.clone(), entry);
        let tree = CgroupTree::new(&CgroupRoot::parse("").unwrap(), CgroupDriver::Cgroupfs);
        let collector = StatsCollector::new(StatsSettings {
            pods: Arc::new(pods),
            runtime: Arc::clone(&runtime) as _,
            images: Arc::new(FakeImages),
            cgroups: CgroupFs::from_mounts(&cgroups, true, &[]).unwrap(),
            trees: vec![tree.unwrap()],
            system: SystemCgroups::of_agent(NOW.parse().unwrap()),
            source,
            clock: Clock::following_tokio(NOW.parse().unwrap()),
            machine: root.path().to_owned(),
            root: root.path().to_owned(),
            logs: root.path().join("logs"),
            cpu_period_us: Some(100_000),
            log_directory: {
                let logs = root.path().join("logs");
                Arc::new(move |_, container| logs.join(container))
            },
            directories: {
                let root = root.path().to_owned();
                Arc::new(move |_| PodDirectories {
                    volumes: vec![VolumeDirectory {
                        name: "data".into(),
                        path: root.join("data"),
                        is_ephemeral: true,
                        may_have_quota: false,
                    }],
                    etc_hosts: Some(root.join("hosts")),
                })
            },
            volume_period: Some(Duration::from_secs(60)),
            metrics: NodeMetrics::new(),
        });
        let node = Self {
            root,
            runtime,
            collector,
        };
        node.put("proc/stat", "cpu 1 0 0 0\n");
        let meminfo = "MemTotal: 9 kB\nMemFree: 1 kB\nInactive(file): 0 kB\n";
        node.put("proc/meminfo", meminfo);
        node
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn pod_directory(&self) -> String {
        format!("cgroup/kubepods/besteffort/pod{}", entry().pod.uid.as_str())
    }

    /// Writes the files of a cgroup that used so many microseconds.
    fn put_cgroup(&self, directory: &str, usage: u64) {
        for (file, text) in [
            ("cgroup.controllers", "cpu memory\n"),
            ("cpu.stat", &*format!("usage_usec {usage}\n")),
            ("memory.current", "4096\n"),
            ("memory.max", "max\n"),
            ("memory.stat", "inactive_file 96\n"),
            ("memory.events", ""),
        ] {
            let file = Path::new(directory).join(file);
            self.put(file.to_str().unwrap(), text);
        }
    }

    /// Gives the pod a process in its own network namespace, or in the node's.
    fn put_network(&self, namespace: &str) {
        let procs = format!("{}/sandbox/cgroup.procs", self.pod_directory());
        self.put(&procs, "7\n");
        self.put("proc/7/net/dev", "\n\nlo: 5\nveth0: 4 0 3\neth0: 6\n");
        for (process, namespace) in [("self", "net:[1]"), ("7", namespace)] {
            let directory = self.root.path().join("proc").join(process).join("ns");
            fs::create_dir_all(&directory).unwrap();
            std::os::unix::fs::symlink(namespace, directory.join("net")).unwrap();
        }
    }

    async fn sample(&self) -> Arc<StatsSample> {
        self.collector
            .sample(StatsDetail::Usage, Duration::ZERO)
            .await
    }

    fn asked(&self) -> usize {
        self.runtime.asked.load(Ordering::Relaxed)
    }

    fn asked_for_containers(&self) -> usize {
        self.runtime.asked_for_containers.load(Ordering::Relaxed)
    }
}

fn entry() -> PodEntry {
    let now: Timestamp = NOW.parse().unwrap();
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n\
                spec: {containers: [{name: app, image: app}, {name: done, image: app}]}\n";
    let context = ParseContext {
        node_name: "n1",
        source: PodSource::File,
        origin: "/m/web.yaml",
        adopted_uid: None,
        now,
    };
    let pod = parse(decode(text).pods.remove(0).unwrap(), &context).unwrap();
    let container = |name: &str, id: &str, state| ContainerStatus {
        name: name.into(),
        image: "app".into(),
        image_id: "app".into(),
        container_id: id.into(),
        ready: true,
        started: true,
        restart_count: 0,
        state,
        last_state: None,
        user: None,
        recursive_read_only: Vec::new(),
    };
    let waiting = ContainerState::Waiting {
        reason: "".into(),
        message: "".into(),
    };
    PodEntry {
        pod: Arc::new(pod),
        status: PodStatus {
            phase: Phase::Running,
            reason: "".into(),
            message: "".into(),
            start_time: now,
            pod_ips: Vec::new(),
            conditions: Vec::new(),
            observed_generation: 1,
            init_containers: Vec::new(),
            containers: vec![
                container("app", "c1", ContainerState::Running { started_at: now }),
                container("done", "c2", waiting),
            ],
            ephemeral_containers: Vec::new(),
        },
        deletion: None,
        why: Vec::new(),
        history: Arc::default(),
        wake_at: None,
        finished: false,
    }
}

#[tokio::test(start_paused = true)]
async fn numbers_are_read_on_request_and_not_twice_within_their_age() {
    let node = TestNode::new(Answers::Never, UsageSource::Cgroups);
    let pod = node.pod_directory();
    node.put_cgroup(&pod, 20);
    node.put_cgroup(&format!("{pod}/c1"), 10);
    let sample = node.sample().await;
    assert_eq!(sample.problems, Vec::<String>::new());
    assert_eq!(sample.node.usage.cpu.unwrap().usage_ns, 10_000_000);
    let found = &sample.pods[0];
    assert_eq!((&*found.name, &*found.namespace), ("web-n1", "default"));
    assert_eq!(found.usage.cpu.unwrap().usage_ns, 20_000);
    // Only what runs is measured.
    let [container] = found.containers.as_slice() else {
        panic!("{:?}", found.containers);
    };
    assert_eq!(&*container.name, "app");
    assert_eq!(container.usage.cpu.unwrap().usage_ns, 10_000);
    assert_eq!(container.usage.memory.unwrap().working_set, Some(4000));

    node.put_cgroup(&format!("{pod}/c1"), 1_000_010);
    tokio::time::advance(Duration::from_secs(2)).await;
    let usage = StatsDetail::Usage;
    let same = node.collector.sample(usage, Duration::from_secs(2)).await;
    assert!(Arc::ptr_eq(&same, &sample));
    let next = node.collector.sample(usage, Duration::from_secs(1)).await;
    let cpu = next.pods[0].containers[0].usage.cpu.unwrap();
    assert_eq!(cpu.nano_cores, Some(500_000_000));
    assert_eq!(node.asked(), 0, "cgroups had all numbers");
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_hangs_costs_its_own_numbers_and_one_wait() {
    let node = TestNode::new(Answers::Never, UsageSource::Runtime);
    let pod = node.pod_directory();
    node.put_cgroup(&pod, 20);
    let began = Instant::now();
    let sample = node.sample().await;
    assert_eq!(sample.problems, ["the container runtime does not respond"]);
    assert_eq!(sample.pods[0].usage.cpu.unwrap().usage_ns, 20_000);
    assert!(sample.pods[0].containers.is_empty());
    assert!(sample.node.usage.memory.is_some());
    assert_eq!(began.elapsed(), PATIENCE);
    tokio::time::advance(Duration::from_secs(1)).await;
    let began = Instant::now();
    let again = node.sample().await;
    assert_eq!(again.problems, sample.problems);
    assert_eq!((began.elapsed(), node.asked()), (Duration::ZERO, 1));
}

#[tokio::test(start_paused = true)]
async fn the_runtime_has_what_no_cgroup_has() {
    let node = TestNode::new(Answers::WithContainers, UsageSource::Cgroups);
    let sample = node.sample().await;
    assert_eq!(sample.problems, Vec::<String>::new());
    let container = &sample.pods[0].containers[0];
    assert_eq!(container.usage.cpu.unwrap().usage_ns, 77);

    let node = TestNode::new(Answers::Unimplemented, UsageSource::Cgroups);
    let sample = node.sample().await;
    assert_eq!(sample.problems, Vec::<String>::new());
    assert!(sample.pods.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_without_proc_is_a_problem() {
    let node = TestNode::new(Answers::Unimplemented, UsageSource::Cgroups);
    fs::remove_dir_all(node.root.path().join("proc")).unwrap();
    let sample = node.sample().await;
    assert_eq!(sample.problems, ["/proc: it has no numbers of the machine"]);
}

#[tokio::test(start_paused = true)]
async fn disks_and_networks_are_read_when_they_are_requested() {
    let node = TestNode::new(Answers::WithContainers, UsageSource::Cgroups);
    node.put_cgroup(&node.pod_directory(), 20);
    node.put_cgroup("cgroup/kubepods", 30);
    node.put_cgroup(&format!("{}/c1", node.pod_directory()), 10);
    node.put_network("net:[2]");
    node.put("logs/app/0.log", "12345");
    node.put("proc/self/net/dev", "\n\neth0: 1 2 3\n");
    let usage = node.sample().await;
    assert_eq!(usage.pods[0].containers[0].logs, None);
    assert_eq!((usage.node.fs, &usage.node.image_fs), (None, &None));
    let full = || {
        node.collector
            .sample(StatsDetail::Summary, Duration::from_secs(5))
    };
    let sample = full().await;
    assert_eq!(sample.problems, Vec::<String>::new());
    let container = &sample.pods[0].containers[0];
    assert_eq!(container.logs.unwrap().used, Some(5));
    assert_eq!(container.rootfs.unwrap().used, Some(9));
    let pods = sample.node.pods.as_ref().unwrap();
    assert_eq!(pods.stats.cpu.unwrap().usage_ns, 30_000);
    assert_eq!(sample.node.image_fs.unwrap().used, Some(5));
    assert!(sample.node.fs.unwrap().capacity > Some(0));
    let network = sample.node.network.as_ref().unwrap();
    assert_eq!(network.interfaces[0].rx_errors, Some(3));
    let network = sample.pods[0].network.as_ref().unwrap();
    let names: Vec<&str> = network.interfaces.iter().map(|one| &*one.name).collect();
    assert_eq!((names, network.has_default), (vec!["eth0", "veth0"], true));
    assert_eq!(node.asked(), 0, "the networks of all pods were read here");
    // A full sample has all that a shorter one has.
    let again = node
        .collector
        .sample(StatsDetail::Usage, Duration::from_secs(5));
    assert!(Arc::ptr_eq(&again.await, &sample));
    assert!(Arc::ptr_eq(&full().await, &sample));
    // Metrics show layers and networks only.
    let metrics = node.collector.sample(StatsDetail::Cadvisor, Duration::ZERO);
    let metrics = metrics.await;
    let container = &metrics.pods[0].containers[0];
    assert_eq!((container.logs, metrics.node.fs), (None, None));
    assert_eq!(container.rootfs.unwrap().used, Some(9));
    assert!(metrics.pods[0].network.is_some());
}

#[tokio::test(start_paused = true)]
async fn where_the_numbers_of_a_pod_are_is_looked_for_once_and_again_when_they_are_gone() {
    let node = TestNode::new(Answers::WithContainers, UsageSource::Cgroups);
    let pod = node.pod_directory();
    let full = || async {
        tokio::time::advance(Duration::from_secs(1)).await;
        let sample = node.collector.sample(StatsDetail::Cadvisor, Duration::ZERO);
        sample.await
    };
    let numbers = |sample: &StatsSample| {
        let network = sample.pods[0].network.as_ref();
        let cpu = sample.pods[0].containers[0].usage.cpu;
        let received = network.and_then(|network| network.interfaces[0].rx_bytes);
        (cpu.map(|cpu| cpu.usage_ns), received)
    };
    node.put_cgroup(&pod, 20);
    node.put_cgroup(&format!("{pod}/c1"), 10);
    node.put_network("net:[2]");
    assert_eq!(numbers(&*full().await), (Some(10_000), Some(6)));

    // A process that is in no file any more: it was not looked for.
    node.put(&format!("{pod}/sandbox/cgroup.procs"), "");
    node.put_cgroup(&format!("{pod}/c1"), 11);
    node.put("proc/7/net/dev", "\n\neth0: 7\n");
    assert_eq!(numbers(&*full().await), (Some(11_000), Some(7)));

    // The sandbox and the container are others, in other cgroups.
    let proc = node.root.path().join("proc");
    fs::rename(proc.join("7"), proc.join("8")).unwrap();
    fs::remove_file(proc.join("8/net/dev")).unwrap();
    fs::remove_dir_all(node.root.path().join(&pod).join("c1")).unwrap();
    node.put_cgroup(&format!("{pod}/cri-containerd-c1.scope"), 12);
    node.put(&format!("{pod}/sandbox/cgroup.procs"), "9\n");
    node.put("proc/9/net/dev", "\n\neth0: 8\n");
    fs::rename(proc.join("8/ns"), proc.join("9/ns")).unwrap();
    assert_eq!(numbers(&*full().await), (Some(12_000), Some(8)));
}

#[tokio::test(start_paused = true)]
async fn volumes_are_added_up_when_they_are_requested() {
    let node = TestNode::new(Answers::WithContainers, UsageSource::Cgroups);
    node.put_cgroup(&node.pod_directory(), 20);
    node.put_cgroup(&format!("{}/c1", node.pod_directory()), 10);
    node.put_network("net:[2]");
    node.put("data/file", &"x".repeat(8192));
    node.put("hosts", &"x".repeat(4096));
    let of = |detail| node.collector.sample(detail, Duration::ZERO);
    let without = of(StatsDetail::Cadvisor).await;
    assert_eq!(without.pods[0].volumes, []);
    assert_eq!(without.pods[0].ephemeral_storage, None);

    let with = of(StatsDetail::Summary).await;
    assert_eq!(with.problems, Vec::<String>::new());
    let [volume] = with.pods[0].volumes.as_slice() else {
        panic!("{:?}", with.pods[0]);
    };
    assert_eq!((&*volume.name, volume.fs.inodes_used), ("data", Some(2)));
    let used = volume.fs.used.unwrap();
    assert!(used >= 8192, "{used}");
    let storage = with.pods[0].ephemeral_storage.unwrap();
    let expected = used + 9 + 4096;
    assert!(storage.used >= Some(expected), "{storage:?}, volume {used}");
    assert!(storage.capacity > Some(0));
}

#[tokio::test(start_paused = true)]
async fn the_network_of_the_node_is_not_that_of_a_pod() {
    let node = TestNode::new(Answers::WithContainers, UsageSource::Cgroups);
    node.put_cgroup(&node.pod_directory(), 20);
    node.put_cgroup(&format!("{}/c1", node.pod_directory()), 10);
    node.put_network("net:[1]");
    let sample = node
        .collector
        .sample(StatsDetail::Summary, Duration::ZERO)
        .await;
    assert_eq!(sample.pods[0].network, None);
    assert_eq!(node.asked(), 1, "the runtime may know it");
}

#[tokio::test(start_paused = true)]
async fn layers_are_shown_while_newer_ones_are_on_their_way() {
    let node = TestNode::new(Answers::WithContainers, UsageSource::Cgroups);
    node.put_cgroup(&node.pod_directory(), 20);
    node.put_cgroup(&format!("{}/c1", node.pod_directory()), 10);
    node.put_network("net:[2]");
    let after = async |seconds| {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        let sample = node
            .collector
            .sample(StatsDetail::Summary, Duration::ZERO)
            .await;
        // What goes on in the background.
        tokio::task::yield_now().await;
        let layer = sample.pods[0].containers[0].rootfs.unwrap();
        (layer.used.unwrap(), node.asked_for_containers())
    };
    assert_eq!(after(0).await, (9, 1), "the first request waits");
    assert_eq!(after(9).await, (9, 1));
    assert_eq!(after(1).await, (9, 2));
    assert_eq!(after(1).await, (10, 2));
    assert_eq!(
        after(3600).await,
        (11, 3),
        "nobody asks at idle, and old ones are not shown"
    );
    assert_eq!(node.asked(), 0);
}

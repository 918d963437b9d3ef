//! Tests of the cgroups of pods, on a directory that looks like version 2, with a fake systemd.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command},
};

use rubelet_cgroup_plan::CgroupLayout;
use rubelet_host::{
    CgroupFs,
    systemd::{Slice, SystemdError},
};

use super::*;
use crate::host::tests::{pod, settings};

mod node;

const BURSTABLE: &str = "requests: {cpu: 500m}";
const GUARANTEED: &str = "limits: {cpu: 505m, memory: 64Mi}";

const SYSTEMD: Option<CgroupDriver> = Some(CgroupDriver::Systemd);
const CGROUPFS: Option<CgroupDriver> = Some(CgroupDriver::Cgroupfs);

/// Files of a new cgroup.
const FILES: [(&str, &str); 9] = [
    ("cgroup.controllers", "cpu memory pids hugetlb"),
    ("cgroup.subtree_control", ""),
    ("cgroup.procs", ""),
    ("cpu.weight", "100"),
    ("cpu.max", "max 100000"),
    ("memory.max", "max"),
    ("memory.swap.max", "max"),
    ("pids.max", "max"),
    ("hugetlb.2MB.max", "max"),
];

fn make(root: &Path, path: &str) {
    let mut dir = root.to_owned();
    for part in std::iter::once("").chain(path.split('/')) {
        dir.push(part);
        if dir.join("cgroup.procs").exists() {
            continue;
        }
        fs::create_dir_all(&dir).unwrap();
        for (file, text) in FILES {
            fs::write(dir.join(file), text).unwrap();
        }
    }
}

/// `a-b.slice` is in `a.slice`.
fn dir_of(unit: &str) -> String {
    let name = unit.strip_suffix(".slice").unwrap();
    let ends = name.match_indices('-').map(|(end, _)| end);
    let parts: Vec<String> = ends
        .chain([name.len()])
        .map(|end| format!("{}.slice", &name[..end]))
        .collect();
    parts.join("/")
}

/// Creates and removes cgroups as systemd does, and records the calls.
#[derive(Debug, Clone, Default)]
struct FakeSystemd(Arc<Mutex<FakeState>>);

#[derive(Debug, Default)]
struct FakeState {
    root: PathBuf,
    calls: Vec<String>,
    away: bool,
}

impl FakeSystemd {
    fn call(&self, call: String) -> Result<PathBuf, SystemdError> {
        let mut state = self.0.lock();
        state.calls.push(call);
        if state.away {
            return Err(SystemdError::Unreachable {
                socket: "/run/dbus/system_bus_socket".into(),
                source: std::io::ErrorKind::ConnectionRefused.into(),
            });
        }
        Ok(state.root.clone())
    }

    fn set_away(&self, away: bool) {
        self.0.lock().away = away;
    }

    /// The calls since the last time.
    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().calls)
    }
}

fn shown(values: &CgroupValues) -> String {
    let weight = values.cpu.map(|cpu| format!(" weight={}", cpu.weight));
    let quota = values.cpu_quota.map(|quota| match quota.quota_us {
        Some(us) => format!(" quota={us}"),
        None => " quota=none".to_owned(),
    });
    let memory = values.memory_limit.map(|bytes| match bytes {
        bytes if bytes > 1 << 62 => " memory=none".to_owned(),
        bytes => format!(" memory={}Mi", bytes >> 20),
    });
    let pids = values.pids_limit.map(|limit| format!(" pids={limit}"));
    [weight, quota, memory, pids]
        .into_iter()
        .flatten()
        .collect()
}

impl SliceService for FakeSystemd {
    fn start(&self, slice: &Slice<'_>) -> Result<(), SystemdError> {
        let root = self.call(format!("start {}{}", slice.unit, shown(slice.values)))?;
        make(&root, &dir_of(slice.unit));
        Ok(())
    }

    fn set_values(
        &self,
        unit: &str,
        layout: CgroupLayout,
        values: &CgroupValues,
    ) -> Result<(), SystemdError> {
        assert_eq!(layout, CgroupLayout::V2);
        self.call(format!("set {unit}{}", shown(values))).map(drop)
    }

    fn stop(&self, unit: &str) -> Result<(), SystemdError> {
        let root = self.call(format!("stop {unit}"))?;
        let _ = fs::remove_dir_all(root.join(dir_of(unit)));
        Ok(())
    }
}

struct Fixture {
    root: tempfile::TempDir,
    systemd: FakeSystemd,
    cgroups: PodCgroups,
}

impl Fixture {
    fn new() -> Self {
        Self::reserving(Vec::new())
    }

    /// A node that limits these cgroups to their reservations.
    fn reserving(reserved_cgroups: Vec<ReservedCgroup>) -> Self {
        let root = tempfile::tempdir().unwrap();
        make(root.path(), "");
        let systemd = FakeSystemd::default();
        root.path().clone_into(&mut systemd.0.lock().root);
        let fs = CgroupFs::from_mounts(root.path(), true, &[]).unwrap();
        let settings = HostSettings {
            reserved_cgroups,
            ..settings(root.path(), fs)
        };
        let cgroups = PodCgroups::new(&settings, Box::new(systemd.clone())).unwrap();
        Self {
            root,
            systemd,
            cgroups,
        }
    }

    /// Tracks the pod and ensures its cgroup, as its task does.
    fn run(&self, uid: &str, resources: &str) -> Result<(), String> {
        self.run_with(SYSTEMD, uid, resources)
    }

    fn run_with(
        &self,
        driver: Option<CgroupDriver>,
        uid: &str,
        resources: &str,
    ) -> Result<(), String> {
        let pod = Arc::new(pod(uid, resources));
        self.cgroups.track(&pod);
        let made = self.cgroups.ensure(&pod, driver);
        made.map_err(|error| error.message)
    }

    fn remove(&self, uid: &str) -> Result<bool, String> {
        let removed = self.cgroups.remove(&PodUid::from(uid));
        removed.map_err(|error| error.message)
    }

    fn file(&self, path: &str) -> String {
        fs::read_to_string(self.root.path().join(path)).unwrap()
    }

    fn exists(&self, path: &str) -> bool {
        self.root.path().join(path).exists()
    }

    /// Starts a process in a cgroup.
    fn process(&self, path: &str) -> Child {
        make(self.root.path(), path);
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let file = self.root.path().join(path).join("cgroup.procs");
        fs::write(file, child.id().to_string()).unwrap();
        child
    }
}

#[test]
fn slices_are_started_from_the_top_with_their_values() {
    let node = Fixture::new();
    assert!(!node.cgroups.limits_swap(), "no cgroup shows it yet");
    node.run("u-1", GUARANTEED).unwrap();
    assert_eq!(
        node.systemd.calls(),
        [
            "start kubepods.slice weight=79 memory=1024Mi",
            "start kubepods-burstable.slice weight=1",
            "start kubepods-besteffort.slice weight=1",
            // The quota is in whole percents of a CPU, as systemd counts.
            "start kubepods-podu_1.slice weight=20 quota=51000 memory=64Mi pids=100",
        ]
    );
    // Known before the first container is created.
    assert!(node.cgroups.limits_swap());
    let parent = node.cgroups.parent(&pod("u-1", GUARANTEED), SYSTEMD);
    assert_eq!(parent.unwrap(), "/kubepods.slice/kubepods-podu_1.slice");
    for (file, expected) in [
        ("cpu.weight", "79"),
        ("memory.max", "1073741824"),
        // systemd has no property for huge pages.
        ("hugetlb.2MB.max", "8388608"),
        ("kubepods-burstable.slice/cpu.weight", "1"),
        (
            "kubepods-burstable.slice/hugetlb.2MB.max",
            "4611686018427387904",
        ),
        ("kubepods-podu_1.slice/cpu.weight", "20"),
        ("kubepods-podu_1.slice/cpu.max", "51000 100000"),
        ("kubepods-podu_1.slice/memory.max", "67108864"),
        ("kubepods-podu_1.slice/pids.max", "100"),
        ("kubepods-podu_1.slice/hugetlb.2MB.max", "0"),
    ] {
        assert_eq!(node.file(&format!("kubepods.slice/{file}")), expected);
    }
}

#[test]
fn only_changed_values_are_sent_to_systemd() {
    let node = Fixture::new();
    node.run("u-1", BURSTABLE).unwrap();
    node.systemd.calls();
    node.run("u-1", BURSTABLE).unwrap();
    assert_eq!(node.systemd.calls(), [""; 0]);
    node.run("u-2", BURSTABLE).unwrap();
    assert_eq!(
        node.systemd.calls(),
        [
            "set kubepods-burstable.slice weight=39",
            "start kubepods-burstable-podu_2.slice weight=20 quota=none memory=none pids=100",
        ]
    );
    let tier = "kubepods.slice/kubepods-burstable.slice";
    assert_eq!(node.file(&format!("{tier}/cpu.weight")), "39");
}

#[test]
fn each_change_of_a_cgroup_is_counted() {
    let node = Fixture::new();
    node.run("u-1", BURSTABLE).unwrap();
    // The tier has another weight.
    node.run("u-2", BURSTABLE).unwrap();
    node.run("u-2", GUARANTEED).unwrap();
    node.run("u-2", GUARANTEED).unwrap();
    node.remove("u-1").unwrap();
    let text = node.cgroups.metrics.render();
    let count = |change: &str| {
        let name = "kubelet_cgroup_manager_duration_seconds_count";
        let start = format!("{name}{{operation_type=\"{change}\"}} ");
        let mut lines = text.lines();
        let count = lines.find_map(|line| line.strip_prefix(&start));
        count.unwrap().parse::<u32>().unwrap()
    };
    assert_eq!((count("create"), count("destroy")), (3, 1), "{text}");
    assert!(count("update") >= 2, "{text}");
}

#[test]
fn an_edit_sets_and_lifts_limits_where_the_pod_is() {
    let node = Fixture::new();
    node.run("u-1", GUARANTEED).unwrap();
    node.systemd.calls();
    node.run("u-1", "limits: {cpu: 1000m, memory: 32Mi}")
        .unwrap();
    let unit = "kubepods-podu_1.slice";
    assert_eq!(
        node.systemd.calls(),
        [format!(
            "set {unit} weight=39 quota=100000 memory=32Mi pids=100"
        )]
    );
    let burstable = "requests: {cpu: 500m}, limits: {cpu: 1000m, memory: 32Mi}";
    node.run("u-2", burstable).unwrap();
    node.systemd.calls();
    node.run("u-2", BURSTABLE).unwrap();
    let unit = "kubepods-burstable-podu_2.slice";
    assert_eq!(
        node.systemd.calls(),
        [format!(
            "set {unit} weight=20 quota=none memory=none pids=100"
        )]
    );
    let dir = format!("kubepods.slice/kubepods-burstable.slice/{unit}");
    assert_eq!(node.file(&format!("{dir}/cpu.max")), "max 100000");
    assert_eq!(
        node.file(&format!("{dir}/memory.max")),
        i64::MAX.to_string()
    );
}

#[test]
fn the_slice_in_the_old_tier_is_stopped_when_it_is_empty() {
    let node = Fixture::new();
    node.run("u-1", GUARANTEED).unwrap();
    node.run("u-1", "{}").unwrap();
    let calls = node.systemd.calls();
    assert!(calls.contains(&"stop kubepods-podu_1.slice".to_owned()));
    assert!(!node.exists("kubepods.slice/kubepods-podu_1.slice"));

    // The old container runs until it is replaced.
    let old = "kubepods.slice/kubepods-podu_2.slice";
    node.run("u-2", GUARANTEED).unwrap();
    let mut child = node.process(&format!("{old}/rubelet-c.scope"));
    node.systemd.calls();
    node.run("u-2", "{}").unwrap();
    let unit = "kubepods-besteffort-podu_2.slice";
    let expected = format!("start {unit} weight=1 quota=none memory=none pids=100");
    assert_eq!(node.systemd.calls(), [expected]);
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(
        node.root
            .path()
            .join(old)
            .join("rubelet-c.scope/cgroup.procs"),
        "",
    )
    .unwrap();
    assert_eq!(node.remove("u-2"), Ok(true));
    assert!(!node.exists(old));
}

#[test]
fn the_slice_of_a_pod_is_stopped_and_its_tier_has_less() {
    let node = Fixture::new();
    node.run("u-1", BURSTABLE).unwrap();
    node.run("u-2", BURSTABLE).unwrap();
    node.systemd.calls();
    assert_eq!(node.remove("u-1"), Ok(true));
    assert_eq!(
        node.systemd.calls(),
        [
            "stop kubepods-burstable-podu_1.slice",
            "set kubepods-burstable.slice weight=20",
        ]
    );
    let tier = "kubepods.slice/kubepods-burstable.slice";
    assert_eq!(node.file(&format!("{tier}/cpu.weight")), "20");
    assert!(!node.exists(&format!("{tier}/kubepods-burstable-podu_1.slice")));
    // Repeated, as after a crash of the agent.
    assert_eq!(node.remove("u-1"), Ok(true));
    assert_eq!(node.systemd.calls(), [""; 0]);
}

#[test]
fn a_slice_of_an_earlier_agent_is_stopped_too() {
    let node = Fixture::new();
    let unit = "kubepods-besteffort-podu_1.slice";
    make(node.root.path(), &dir_of(unit));
    assert_eq!(node.remove("u-1"), Ok(true));
    assert_eq!(node.systemd.calls(), [format!("stop {unit}")]);
    // An active unit whose cgroup an operator removed.
    node.run("u-2", "{}").unwrap();
    let unit = "kubepods-besteffort-podu_2.slice";
    fs::remove_dir_all(node.root.path().join(dir_of(unit))).unwrap();
    node.systemd.calls();
    assert_eq!(node.remove("u-2"), Ok(true));
    assert_eq!(node.systemd.calls(), [format!("stop {unit}")]);
}

#[test]
fn lost_processes_are_killed_at_the_second_attempt_before_the_slice_is_stopped() {
    let node = Fixture::new();
    node.run("u-1", "{}").unwrap();
    let scope = "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podu_1.slice/x.scope";
    let mut child = node.process(scope);
    node.systemd.calls();
    assert_eq!(node.remove("u-1"), Ok(false));
    assert!(
        child.try_wait().unwrap().is_none(),
        "not killed at the first attempt"
    );
    assert_eq!(node.remove("u-1"), Ok(false));
    child.wait().unwrap();
    assert_eq!(node.systemd.calls(), [""; 0]);
    fs::write(node.root.path().join(scope).join("cgroup.procs"), "").unwrap();
    assert_eq!(node.remove("u-1"), Ok(true));
    assert_eq!(
        node.systemd.calls(),
        ["stop kubepods-besteffort-podu_1.slice"]
    );
}

#[test]
fn without_d_bus_only_pods_that_need_it_fail() {
    let node = Fixture::new();
    node.run("u-1", GUARANTEED).unwrap();
    node.systemd.set_away(true);
    node.run("u-1", GUARANTEED).unwrap();
    let expected = "cannot reach systemd through /run/dbus/system_bus_socket: connection refused";
    assert_eq!(
        node.run("u-2", GUARANTEED),
        Err(format!("unable to ensure pod container exists: {expected}"))
    );
    assert_eq!(node.remove("u-1"), Err(expected.to_owned()));
    for path in ["kubepods", "kubepods/burstable", "kubepods/podu-3"] {
        make(node.root.path(), path);
    }
    make(node.root.path(), "kubepods/besteffort");
    node.run_with(CGROUPFS, "u-3", GUARANTEED).unwrap();

    node.systemd.set_away(false);
    node.run("u-2", GUARANTEED).unwrap();
    assert_eq!(node.remove("u-1"), Ok(true));
    assert_eq!(node.remove("u-2"), Ok(true));
}

#[test]
fn a_failed_update_is_repeated() {
    let node = Fixture::new();
    node.run("u-1", GUARANTEED).unwrap();
    let edited = "limits: {cpu: 1000m, memory: 32Mi}";
    node.systemd.set_away(true);
    node.run("u-1", edited).unwrap_err();
    node.systemd.set_away(false);
    node.systemd.calls();
    node.run("u-1", edited).unwrap();
    assert_eq!(
        node.systemd.calls(),
        ["start kubepods-podu_1.slice weight=39 quota=100000 memory=32Mi pids=100"]
    );
}

#[test]
fn slices_that_an_operator_stopped_are_started_again() {
    let node = Fixture::new();
    node.run("u-1", BURSTABLE).unwrap();
    node.systemd.calls();
    let tier = "kubepods.slice/kubepods-burstable.slice";
    fs::remove_dir_all(node.root.path().join(tier)).unwrap();
    node.run("u-1", BURSTABLE).unwrap();
    assert_eq!(
        node.systemd.calls(),
        [
            "start kubepods-burstable.slice weight=20",
            "start kubepods-burstable-podu_1.slice weight=20 quota=none memory=none pids=100",
        ]
    );
}

#[test]
fn tiers_follow_pods_that_come_and_go_with_each_driver() {
    for (driver, tier) in [
        (CGROUPFS, "kubepods/burstable"),
        (SYSTEMD, "kubepods.slice/kubepods-burstable.slice"),
    ] {
        let node = Fixture::new();
        for path in [
            "kubepods/burstable/podu-1",
            "kubepods/besteffort",
            "kubepods/podu-0",
        ] {
            make(node.root.path(), path);
        }
        let weight = || node.file(&format!("{tier}/cpu.weight"));
        let one = Arc::new(pod("u-1", BURSTABLE));
        assert!(!node.cgroups.track(&one), "no tiers yet");
        node.cgroups.ensure(&one, driver).unwrap();
        assert_eq!(weight(), "20");
        // A pod that an earlier agent started.
        let two = Arc::new(pod("u-2", BURSTABLE));
        assert!(node.cgroups.track(&two));
        assert!(!node.cgroups.track(&two), "one update is pending");
        assert_eq!(weight(), "20");
        node.cgroups.update_tiers();
        assert_eq!(weight(), "39");
        assert!(node.cgroups.track(&two));
        node.remove("u-2").unwrap();
        assert_eq!(weight(), "20");
        node.remove("u-1").unwrap();
        assert_eq!(weight(), "1");
    }
}

#[test]
fn without_cgroups_per_qos_systemd_is_not_called() {
    let node = Fixture::new();
    let fs = CgroupFs::from_mounts(node.root.path(), true, &[]).unwrap();
    let settings = HostSettings {
        cgroups_per_qos: false,
        ..settings(node.root.path(), fs)
    };
    let cgroups = PodCgroups::new(&settings, Box::new(node.systemd.clone())).unwrap();
    let pod = Arc::new(pod("u-1", BURSTABLE));
    cgroups.ensure(&pod, SYSTEMD).unwrap();
    assert_eq!(cgroups.parent(&pod, SYSTEMD).unwrap(), "");
    assert!(cgroups.remove(&pod.uid).unwrap());
    assert_eq!(node.systemd.calls(), [""; 0]);
}

//! The real host in a directory of the test.

mod group_kill;

use std::{
    path::Path,
    sync::mpsc::{Receiver, Sender, channel},
    time::Duration,
};

use rubelet_api::{
    downward::Allocatable,
    manifest::decode,
    parse::{ParseContext, parse},
    pod::{Pod, PodSource},
};
use rubelet_cgroup_plan::{CgroupLayout, CgroupValues};
use rubelet_host::{
    machine::HugepagePool,
    systemd::{Slice, SystemdError},
};
use tokio::{runtime::Builder, task::JoinSet, time::timeout};

use super::*;

/// A pod with this UID and one container with these resources.
pub(super) fn pod(uid: &str, resources: &str) -> Pod {
    let resources = if resources == "{}" { "" } else { resources };
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {uid}}}\n\
         spec: {{containers: [{{name: a, image: a, resources: {{{resources}}}}}]}}\n"
    );
    let context = ParseContext {
        node_name: "n",
        source: PodSource::File,
        origin: "/manifests/pod.yaml",
        adopted_uid: None,
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    let raw = decode(&text).pods.remove(0).expect("YAML of a pod");
    let mut pod = parse(raw, &context).expect("a valid pod");
    pod.uid = uid.into();
    pod
}

/// A node of two processors and a gibibyte, with its files below `root`.
pub(super) fn settings(root: &Path, cgroups: CgroupFs) -> HostSettings {
    HostSettings {
        root: root.join("kubelet"),
        pod_logs: root.join("pods"),
        container_logs: root.join("containers"),
        node_name: "n".into(),
        node_ips: NodeIps::fixed(Vec::new()),
        machine: Machine {
            cpus: 2,
            memory: 1 << 30,
            swap: 0,
            hugepages: vec![HugepagePool {
                page_size: 2 << 20,
                pages: 4,
            }],
            boot_id: String::new(),
            machine_id: None,
            hostname: "n".to_owned(),
            kernel_version: String::new(),
        },
        allocatable: Allocatable::default(),
        unreserved_memory: 1 << 30,
        memory_qos: None,
        memory_reserved: None,
        kubepods: KubepodsAmounts {
            cpu: 2000,
            memory: 1 << 30,
            pids: None,
            hugepages: BTreeMap::from([(2 << 20, 8 << 20)]),
        },
        reserved_cgroups: Vec::new(),
        cgroups,
        cgroup_root: String::new(),
        cgroups_per_qos: true,
        cgroup_driver: CgroupDriver::Systemd,
        cpu_cfs_quota: true,
        cpu_cfs_quota_period: Duration::from_millis(100),
        pod_pids_limit: Some(100),
        single_process_oom_kill: None,
        cluster_dns: Vec::new(),
        cluster_domain: String::new(),
        resolv_conf: String::new(),
        seccomp_default: false,
        allowed_unsafe_sysctls: Vec::new(),
        swap_behavior: SwapBehavior::NoSwap,
        user_ids_per_pod: 65_536,
        volume_quotas: VolumeQuotas::GateOff,
        max_pods: 110,
        metrics: NodeMetrics::new(),
    }
}

/// A systemd that does not answer until the test drops the sender.
#[derive(Debug)]
struct HungSystemd {
    begun: Sender<String>,
    end: Mutex<Receiver<()>>,
}

impl cgroups::SliceService for HungSystemd {
    fn start(&self, slice: &Slice<'_>) -> Result<(), SystemdError> {
        let _ = self.begun.send(slice.unit.to_owned());
        // Returns an error when the sender is dropped. The other calls wait for the lock.
        let _ = self.end.lock().recv();
        Err(SystemdError::Missing)
    }

    fn set_values(&self, _: &str, _: CgroupLayout, _: &CgroupValues) -> Result<(), SystemdError> {
        Err(SystemdError::Missing)
    }

    fn stop(&self, _: &str) -> Result<(), SystemdError> {
        Err(SystemdError::Missing)
    }
}

/// CRI-O does not create it.
#[tokio::test]
async fn the_log_directory_of_a_container_exists_before_the_container() {
    let root = tempfile::tempdir().expect("a directory");
    let cgroups = CgroupFs::from_mounts(root.path(), true, &[]).expect("a hierarchy");
    let mut settings = settings(root.path(), cgroups);
    settings.cgroups_per_qos = false;
    let host = LocalHost::new(settings).expect("a host");
    let pod = Arc::new(pod("u-1", "{}"));
    let objects = PodObjects::default();
    host.prepare(&pod, None, &objects).await.expect("a pod");
    let files = host.container_files(&pod, "a", &[], &[]).await;
    files.expect("a container's files");
    let logs = host.log_dir(&pod).expect("names");
    assert!(logs.container("a").expect("a name").is_dir());
}

/// Time is not paused here: it would stand still while a blocking thread works.
#[test]
fn a_hung_systemd_delays_only_pods_that_need_it() {
    let root = tempfile::tempdir().expect("a directory");
    let cgroups = CgroupFs::from_mounts(root.path(), true, &[]).expect("a hierarchy");
    let (begun, begins) = channel();
    let (release, end) = channel();
    let systemd = HungSystemd {
        begun,
        end: Mutex::new(end),
    };
    let settings = settings(root.path(), cgroups);
    let host = LocalHost::with_systemd(settings, Box::new(systemd)).expect("a host");
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime
        .enable_all()
        .max_blocking_threads(CGROUP_CHANGES + 1);
    runtime.build().expect("a runtime").block_on(async {
        let mut pods = JoinSet::new();
        for number in 0..3 * CGROUP_CHANGES {
            let host = host.clone();
            pods.spawn(async move {
                let pod = Arc::new(pod(&format!("u-{number}"), "{}"));
                let objects = PodObjects::default();
                host.prepare(&pod, None, &objects).await
            });
        }
        let limit = Duration::from_secs(60);
        let mut hung = 0;
        while hung < CGROUP_CHANGES {
            hung += begins.try_iter().count();
            tokio::task::yield_now().await;
        }
        let other = PodUid::from("other");
        let removed = timeout(limit, host.remove_volumes(&other)).await;
        let removed = removed.expect("a thread is free");
        removed.expect("nothing to remove");
        assert_eq!(
            begins.try_iter().count(),
            0,
            "further pods wait without a thread"
        );
        drop(release);
        while let Some(ended) = pods.join_next().await {
            let error = ended.expect("no panic").expect_err("there is no systemd");
            assert!(
                error.message.contains("set cgroupDriver to cgroupfs"),
                "{error}"
            );
        }
    });
}

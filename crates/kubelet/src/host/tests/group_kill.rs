//! OOM kills end whole containers, whatever systemd does to their scopes.

use std::{
    fs::{create_dir_all, read_to_string, write},
    path::PathBuf,
};

use jiff::Timestamp;
use rubelet_api::status::{ContainerState, ContainerStatus, Phase, PodStatus};
use rubelet_node_state::pod_board::{PodBoard, PodEntry};
use tokio::{spawn, time::sleep};

use super::*;
use crate::group_kill::keep_group_kills;

/// A pod whose container runs, or else waits.
fn entry(pod: &Arc<Pod>, runs: bool) -> PodEntry {
    let now = Timestamp::UNIX_EPOCH;
    let state = match runs {
        true => ContainerState::Running { started_at: now },
        false => ContainerState::Waiting {
            reason: "".into(),
            message: "".into(),
        },
    };
    let container = ContainerStatus {
        name: "a".into(),
        image: "a".into(),
        image_id: "a".into(),
        container_id: "c1".into(),
        ready: true,
        started: true,
        restart_count: 0,
        state,
        last_state: None,
        user: None,
        recursive_read_only: Vec::new(),
    };
    PodEntry {
        pod: Arc::clone(pod),
        status: PodStatus {
            phase: Phase::Running,
            reason: "".into(),
            message: "".into(),
            start_time: now,
            pod_ips: Vec::new(),
            conditions: Vec::new(),
            observed_generation: 1,
            init_containers: Vec::new(),
            containers: vec![container],
            ephemeral_containers: Vec::new(),
        },
        deletion: None,
        why: Vec::new(),
        history: Arc::default(),
        wake_at: None,
        finished: false,
    }
}

/// A node with a running container in a scope.
struct RunningContainer {
    root: tempfile::TempDir,
    pods: Arc<PodBoard>,
    pod: Arc<Pod>,
    /// `memory.oom.group` of its scope.
    file: PathBuf,
}

impl RunningContainer {
    /// `scope` is the name of its cgroup.
    fn new(scope: &str) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let pod = Arc::new(pod("u-1", "{}"));
        let slice = "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podu_1.slice";
        let scope = root.path().join(slice).join(scope);
        create_dir_all(&scope).expect("a cgroup");
        let file = scope.join("memory.oom.group");
        write(&file, "0\n").expect("a file");
        let pods = Arc::new(PodBoard::new());
        pods.set(pod.uid.clone(), entry(&pod, true));
        Self {
            root,
            pods,
            pod,
            file,
        }
    }

    /// The task, with this `singleProcessOOMKill`.
    fn keep(&self, single: Option<bool>) -> impl Future<Output = ()> + Send + 'static {
        let cgroups = CgroupFs::from_mounts(self.root.path(), true, &[]).expect("a hierarchy");
        let mut settings = settings(self.root.path(), cgroups);
        settings.single_process_oom_kill = single;
        let host = LocalHost::new(settings).expect("a host");
        keep_group_kills(Arc::clone(&self.pods), host)
    }

    fn kills_group(&self) -> bool {
        read_to_string(&self.file).is_ok_and(|text| text.starts_with('1'))
    }

    async fn until_it_kills_the_group(&self) {
        let wait = async {
            while !self.kills_group() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(60), wait)
            .await
            .expect("the group is killed");
    }
}

#[tokio::test]
async fn the_oom_killer_ends_whole_containers_again_after_systemd_has_reset_their_scopes() {
    let container = RunningContainer::new("cri-containerd-c1.scope");
    let task = spawn(container.keep(None));
    // It was reset while no agent ran.
    container.until_it_kills_the_group().await;
    for _ in 0..2 {
        write(&container.file, "0\n").expect("a file");
        container.until_it_kills_the_group().await;
    }
    // One that starts again has another file.
    let pods = &container.pods;
    pods.set(container.pod.uid.clone(), entry(&container.pod, false));
    pods.set(container.pod.uid.clone(), entry(&container.pod, true));
    write(&container.file, "0\n").expect("a file");
    container.until_it_kills_the_group().await;
    task.abort();
}

/// Waits until a task has nothing more to do.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn single_processes_are_killed_where_that_is_configured() {
    let container = RunningContainer::new("cri-containerd-c1.scope");
    let task = spawn(container.keep(Some(true)));
    settle().await;
    assert!(!container.kills_group());
    task.abort();
}

#[tokio::test]
async fn cgroups_that_systemd_does_not_manage_are_the_runtimes() {
    let container = RunningContainer::new("c1");
    let host = LocalHost::new(settings(
        container.root.path(),
        CgroupFs::from_mounts(container.root.path(), true, &[]).expect("a hierarchy"),
    ));
    let host = host.expect("a host");
    let ids = vec![ContainerId::from("c1")];
    let found = host.oom_groups(Arc::clone(&container.pod), ids).await;
    assert_eq!(found, Vec::new());
}

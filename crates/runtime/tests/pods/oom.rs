//! OOM kills.

use std::path::Path;

use rubelet_cgroup_plan::{CgroupLayout, CgroupPath};
use rubelet_cri::v1;
use rubelet_host::{CgroupFs, CgroupRemoval};
use rubelet_runtime::EmbeddedRuntime;
use rustix::process::Signal;

use crate::fixture::{
    Fixture, create, ended, kill, remove_pod, run_pod, send_signal, shell, shim_pid, start,
    wait_for,
};

/// The memory of a container, in bytes.
const LIMIT: i64 = 16 << 20;

/// Starts a container whose shell waits at a pipe before it takes more than its memory; its identifier.
async fn waiting(
    runtime: &EmbeddedRuntime,
    sandbox: &str,
    pod: &v1::PodSandboxConfig,
    name: &str,
) -> String {
    let script =
        "mkfifo /tmp/go; read go < /tmp/go; exec dd if=/dev/zero of=/dev/null bs=64M count=1";
    let mut container = shell(name, script);
    container.linux = Some(v1::LinuxContainerConfig {
        resources: Some(v1::LinuxContainerResources {
            memory_limit_in_bytes: LIMIT,
            ..Default::default()
        }),
        ..Default::default()
    });
    let id = create(runtime, sandbox, pod, container).await;
    start(runtime, &id).await;
    id
}

pub(crate) async fn an_oom_kill_is_told_when_systemd_has_removed_the_cgroup_already(
    fixture: &Fixture,
) {
    let cgroups = CgroupFs::detect(Path::new("/sys/fs/cgroup")).unwrap();
    if cgroups.layout() != CgroupLayout::V2 {
        // Version 1 does not count for the cgroups below. The guest with version 2 runs this test.
        return;
    }
    let runtime = fixture.runtime().await;
    let pod = fixture.pod("pod0e1f");
    let parent = &pod.linux.as_ref().unwrap().cgroup_parent;
    let parent = CgroupPath::parse(parent).unwrap();
    let sandbox = run_pod(&runtime, &pod).await;
    let shim = shim_pid(&runtime, &sandbox).await;
    for (name, reason) in [
        ("greedy", "OOMKilled"),
        ("killed", "Error"),
        ("again", "OOMKilled"),
    ] {
        let container = waiting(&runtime, &sandbox, &pod, name).await;
        let cgroup = parent.join(&container).unwrap();
        let processes = cgroups.processes(&cgroup).unwrap();
        let init = *processes.first().unwrap();
        let pipe = Path::new("/proc")
            .join(init.to_string())
            .join("root/tmp/go");
        wait_for("the pipe is there", async || pipe.exists()).await;
        send_signal(shim, Signal::STOP);
        if reason == "OOMKilled" {
            // Opening it waits until the shell reads.
            tokio::task::spawn_blocking(|| std::fs::write(pipe, "\n").unwrap())
                .await
                .unwrap();
        } else {
            kill(init);
        }
        wait_for("the cgroup is removed, as systemd does", async || {
            let is_empty = cgroups.processes(&cgroup).unwrap().is_empty();
            is_empty && cgroups.remove(&cgroup).unwrap() == CgroupRemoval::Gone
        })
        .await;
        send_signal(shim, Signal::CONT);
        let end = ended(&runtime, &container).await;
        assert_eq!((end.exit_code, &*end.reason), (137, reason), "{name}");
    }
    remove_pod(&runtime, &sandbox).await;
}

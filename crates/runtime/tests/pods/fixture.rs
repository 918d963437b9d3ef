//! Directories, cgroups and a bridge of one test, and the requests that tests make.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use rubelet_cgroup_plan::CgroupPath;
use rubelet_cri::{ImageLoader, RuntimeService, v1};
use rubelet_host::{
    CgroupFs, CgroupRemoval, mount, mountinfo,
    nft::{ChainName, Connection, TableFamily},
};
use rubelet_runtime::{EmbeddedRuntime, RuntimeSettings, StartError};
use rubelet_streaming::{ExitFuture, RemoteProcess, SessionExit, Source};
use rustix::process::{Pid, Signal, kill_process};

pub(crate) use rubelet_testbed::images::BUSYBOX_IMAGE;

/// How long a test waits for something that should happen at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The bridge of these tests, and that of a second runtime beside the first.
const BRIDGE: &str = "rbtpods";
pub(crate) const SECOND_BRIDGE: &str = "rbtpods2";

pub(crate) struct Fixture {
    dir: PathBuf,
    cgroup: CgroupPath,
    pub(crate) settings: RuntimeSettings,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        // Not the test bed's prefix: its sweeper would take this for one of its own that is lost.
        let name = "rbt-pods";
        let dir = PathBuf::from("/tmp").join(name);
        let cgroup = CgroupPath::parse(name).unwrap();
        let mut settings = RuntimeSettings::new(dir.join("root"), dir.join("run"));
        settings.shim_cgroup = cgroup.join("shims").unwrap();
        settings.network.bridge_name = BRIDGE.to_owned();
        settings.network.cni_conf_dir = dir.join("cni-conf");
        settings.network.cni_cache_dir = dir.join("cni-cache");
        let mut fixture = Self {
            dir,
            cgroup,
            settings,
        };
        // A run that was killed may have left something, and a bridge has a route.
        fixture.clean();
        let subnet = rubelet_testbed::Scratch::wide_subnet().unwrap();
        fixture.settings.network.subnets = vec![subnet.parse().unwrap()];
        fs::create_dir_all(&fixture.dir).unwrap();
        fixture
    }

    /// A runtime with the busybox image.
    pub(crate) async fn runtime(&self) -> Arc<EmbeddedRuntime> {
        let runtime = loop {
            match EmbeddedRuntime::start(self.settings.clone()).await {
                Ok(runtime) => break runtime,
                // One that was dropped may still write a record.
                Err(StartError::Locked(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        };
        let archive = self.dir.join("images.tar");
        if !archive.exists() {
            rubelet_testbed::images::write_archive(&archive).unwrap();
            let names = runtime.load(archive).await.unwrap();
            assert!(names.iter().any(|name| name == BUSYBOX_IMAGE), "{names:?}");
        }
        runtime
    }

    /// A pod's configuration.
    pub(crate) fn pod(&self, name: &str) -> v1::PodSandboxConfig {
        v1::PodSandboxConfig {
            metadata: Some(v1::PodSandboxMetadata {
                name: name.to_owned(),
                uid: format!("uid-{name}"),
                namespace: "default".to_owned(),
                attempt: 0,
            }),
            log_directory: self
                .dir
                .join("logs")
                .join(name)
                .to_string_lossy()
                .into_owned(),
            linux: Some(v1::LinuxPodSandboxConfig {
                cgroup_parent: format!("{}/pods/{name}", self.cgroup),
                security_context: Some(v1::LinuxSandboxSecurityContext {
                    namespace_options: Some(v1::NamespaceOption {
                        pid: v1::NamespaceMode::Container.into(),
                        ..Default::default()
                    }),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    /// The same on the host's network.
    pub(crate) fn host_network(&self, name: &str) -> v1::PodSandboxConfig {
        let mut pod = self.pod(name);
        let linux = pod.linux.as_mut().unwrap();
        let security = linux.security_context.as_mut().unwrap();
        let options = security.namespace_options.as_mut().unwrap();
        options.network = v1::NamespaceMode::Node.into();
        pod
    }

    /// Gives a pod a user namespace; the options for its containers.
    #[expect(clippy::unused_self, reason = "as for the other pods")]
    pub(crate) fn user_namespace(&self, pod: &mut v1::PodSandboxConfig) -> v1::NamespaceOption {
        let mapping = v1::IdMapping {
            host_id: 1_000_000,
            container_id: 0,
            length: 65536,
        };
        let linux = pod.linux.as_mut().unwrap();
        let security = linux.security_context.as_mut().unwrap();
        let options = security.namespace_options.as_mut().unwrap();
        options.userns_options = Some(v1::UserNamespace {
            mode: v1::NamespaceMode::Pod.into(),
            uids: vec![mapping],
            gids: vec![mapping],
        });
        options.clone()
    }

    /// Removes everything that a test may have left; what should not have been there.
    pub(crate) fn clean(&self) -> Vec<String> {
        let mut left = Vec::new();
        let cgroups = CgroupFs::detect(Path::new("/sys/fs/cgroup")).unwrap();
        for part in ["shims", "pods"] {
            let part = self.cgroup.join(part).unwrap();
            for name in cgroups.children(&part).unwrap() {
                // Cgroups of pods are the kubelet's; what is in them is not.
                let child = part.join(&name).unwrap();
                let deeper = cgroups.children(&child).unwrap();
                if part.name() == "shims" || !deeper.is_empty() {
                    left.push(format!("cgroup {child} with {deeper:?}"));
                }
            }
        }
        let end = PATIENCE;
        wait_blocking("the test's cgroup is gone", end, || {
            cgroups.kill(&self.cgroup).unwrap();
            cgroups.remove(&self.cgroup).unwrap() == CgroupRemoval::Gone
        });
        for entry in mountinfo::read().unwrap().into_iter().rev() {
            if entry.mount_point.starts_with(&self.dir) {
                left.push(format!("mount {}", entry.mount_point.display()));
                mount::unmount(&entry.mount_point, true).unwrap();
            }
        }
        for (part, what) in [
            ("run/sandboxes", "directory"),
            ("root/sandboxes", "record"),
            ("root/containers", "record"),
            ("root/snapshots", "root file system"),
        ] {
            for entry in fs::read_dir(self.dir.join(part)).into_iter().flatten() {
                left.push(format!("{what} {}", entry.unwrap().path().display()));
            }
        }
        let _ = fs::remove_dir_all(&self.dir);
        // That of a second runtime as well, which outlives its runtime as this one does.
        for bridge in [BRIDGE, SECOND_BRIDGE] {
            quietly("ip", &["link", "del", bridge]);
            for family in ["inet", "bridge"] {
                quietly("nft", &["delete", "table", family, bridge]);
            }
            remove_forward_rules(bridge);
        }
        left
    }
}

/// Removes the rules for a bridge from iptables' chain `FORWARD`: the runtime adds them where its policy
/// is to drop, as beside docker.
fn remove_forward_rules(bridge: &str) {
    let comment = format!("rubelet: pods on {bridge}");
    for family in [TableFamily::Ip, TableFamily::Ip6] {
        let chain = ChainName::iptables_forward(family);
        let mut connection = Connection::open().unwrap();
        connection
            .delete_rules_with_comment(&chain, &comment)
            .unwrap();
    }
}

/// Runs a program that fails where there is nothing to remove.
fn quietly(program: &str, arguments: &[&str]) {
    let _ = std::process::Command::new(program)
        .args(arguments)
        .stderr(std::process::Stdio::null())
        .status();
}

/// Runs a sandbox; its identifier.
pub(crate) async fn run_pod(runtime: &EmbeddedRuntime, pod: &v1::PodSandboxConfig) -> String {
    run_pod_with(runtime, pod, "").await
}

/// Runs a sandbox with a runtime handler; its identifier.
pub(crate) async fn run_pod_with(
    runtime: &EmbeddedRuntime,
    pod: &v1::PodSandboxConfig,
    handler: &str,
) -> String {
    let request = v1::RunPodSandboxRequest {
        config: Some(pod.clone()),
        runtime_handler: handler.to_owned(),
    };
    runtime
        .run_pod_sandbox(request)
        .await
        .unwrap()
        .pod_sandbox_id
}

/// A container that runs a shell script.
pub(crate) fn shell(name: &str, script: &str) -> v1::ContainerConfig {
    v1::ContainerConfig {
        metadata: Some(v1::ContainerMetadata {
            name: name.to_owned(),
            attempt: 0,
        }),
        image: Some(v1::ImageSpec {
            image: BUSYBOX_IMAGE.to_owned(),
            ..Default::default()
        }),
        command: vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()],
        log_path: format!("{name}/0.log"),
        ..Default::default()
    }
}

/// Makes a container; its identifier.
pub(crate) async fn create(
    runtime: &EmbeddedRuntime,
    sandbox: &str,
    pod: &v1::PodSandboxConfig,
    container: v1::ContainerConfig,
) -> String {
    let request = v1::CreateContainerRequest {
        pod_sandbox_id: sandbox.to_owned(),
        config: Some(container),
        sandbox_config: Some(pod.clone()),
    };
    runtime
        .create_container(request)
        .await
        .unwrap()
        .container_id
}

/// Starts a container.
pub(crate) async fn start(runtime: &EmbeddedRuntime, container: &str) {
    let request = v1::StartContainerRequest {
        container_id: container.to_owned(),
    };
    runtime.start_container(request).await.unwrap();
}

/// The status of a container.
pub(crate) async fn status(runtime: &EmbeddedRuntime, container: &str) -> v1::ContainerStatus {
    let request = v1::ContainerStatusRequest {
        container_id: container.to_owned(),
        verbose: false,
    };
    runtime
        .container_status(request)
        .await
        .unwrap()
        .status
        .unwrap()
}

/// Waits until a container has ended; its status.
pub(crate) async fn ended(runtime: &EmbeddedRuntime, container: &str) -> v1::ContainerStatus {
    let waited = tokio::time::timeout(PATIENCE, async {
        loop {
            let status = status(runtime, container).await;
            if status.state() == v1::ContainerState::ContainerExited {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.expect("the container does not end")
}

/// Stops and removes a sandbox.
pub(crate) async fn remove_pod(runtime: &EmbeddedRuntime, sandbox: &str) {
    let stop = v1::StopPodSandboxRequest {
        pod_sandbox_id: sandbox.to_owned(),
    };
    runtime.stop_pod_sandbox(stop).await.unwrap();
    let remove = v1::RemovePodSandboxRequest {
        pod_sandbox_id: sandbox.to_owned(),
    };
    runtime.remove_pod_sandbox(remove).await.unwrap();
}

/// Waits for a condition.
pub(crate) async fn wait_for(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain: {what}");
}

/// Writes to the standard input of a session.
pub(crate) async fn send(process: &mut RemoteProcess, text: &'static [u8]) {
    let stdin = process.stdin.as_mut().unwrap();
    stdin.write(Bytes::from_static(text)).await.unwrap();
}

/// The exit code that a session ends with.
pub(crate) async fn exit_code(exit: ExitFuture) -> i32 {
    let exit = tokio::time::timeout(PATIENCE, exit).await;
    match exit.expect("the session does not end").unwrap() {
        SessionExit::Code(code) => code,
        other => panic!("{other:?}"),
    }
}

/// Reads to the end.
pub(crate) async fn read_source(source: &mut dyn Source) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(bytes) = source.read().await.unwrap() {
        all.extend_from_slice(&bytes);
    }
    all
}

/// Reads an output of a session to its end.
pub(crate) async fn read_all(output: &mut Option<Box<dyn Source>>) -> Vec<u8> {
    let read = read_source(&mut **output.as_mut().unwrap());
    let read = tokio::time::timeout(PATIENCE, read).await;
    read.expect("the output does not end")
}

/// Reads exactly so many bytes.
pub(crate) async fn read_exact(output: &mut Option<Box<dyn Source>>, length: usize) -> Vec<u8> {
    let all = read_while(output, |all| all.len() < length).await;
    assert_eq!(
        all.len(),
        length,
        "{:?}",
        String::from_utf8_lossy(&all[length..])
    );
    all
}

/// Reads until a text comes.
pub(crate) async fn read_until(output: &mut Option<Box<dyn Source>>, text: &str) {
    read_while(output, |all| !String::from_utf8_lossy(all).contains(text)).await;
}

async fn read_while(
    output: &mut Option<Box<dyn Source>>,
    goes_on: impl Fn(&[u8]) -> bool,
) -> Vec<u8> {
    let output = output.as_mut().unwrap();
    let mut all = Vec::new();
    while goes_on(&all) {
        let read = tokio::time::timeout(PATIENCE, output.read()).await;
        match read.expect("there is no more output").unwrap() {
            Some(bytes) => all.extend_from_slice(&bytes),
            None => panic!("the output ends after {:?}", String::from_utf8_lossy(&all)),
        }
    }
    all
}

fn wait_blocking(what: &str, within: Duration, mut done: impl FnMut() -> bool) {
    rubelet_testbed::wait::until(what, within, || Ok(done().then_some(()))).unwrap();
}

/// The process of a pod's shim.
pub(crate) async fn shim_pid(runtime: &EmbeddedRuntime, sandbox: &str) -> i32 {
    let request = v1::PodSandboxStatusRequest {
        pod_sandbox_id: sandbox.to_owned(),
        verbose: true,
    };
    let answer = runtime.pod_sandbox_status(request).await.unwrap();
    let info: serde_json::Value = serde_json::from_str(&answer.info["info"]).unwrap();
    i32::try_from(info["pid"].as_i64().unwrap()).unwrap()
}

/// Kills a process that this test has started.
pub(crate) fn kill(pid: i32) {
    send_signal(pid, Signal::KILL);
}

/// Sends a signal to a process that this test has started.
pub(crate) fn send_signal(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).unwrap();
    kill_process(pid, signal).unwrap();
}

//! The test bed itself, without any agent: two concurrent runtimes that leave nothing behind, and
//! the clean-up after a killed run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::Result;
use rubelet_cri::{RuntimeService, v1};
use rubelet_testbed::cleanup::processes;
use rubelet_testbed::{Containerd, CriTruth, Scratch, http, images, leftovers, sweep, wait};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Held while a sandbox with host ports is created: on a host without the plugin's chains two first
/// calls race to add them, and one of them fails ("File exists"). An agent retries; these tests
/// have none.
static PORTMAP: Mutex<()> = Mutex::new(());

#[test]
fn two_concurrent_runtimes_leave_nothing_behind() {
    let remains = std::thread::scope(|scope| {
        let runs = [8081, 8082].map(|host_port| scope.spawn(move || run_one(host_port)));
        runs.map(|run| run.join().expect("a run panicked").unwrap())
    });
    let nothing: Vec<String> = Vec::new();
    for scratch in remains {
        assert_eq!(leftovers(&scratch).unwrap(), nothing);
    }
}

fn run_one(host_port: i32) -> Result<Scratch> {
    let containerd = Containerd::start()?;
    let truth = containerd.truth()?;
    let pod = RawPod::start(&containerd, &truth, host_port)?;
    let page = |address: &str| {
        wait::until("the web server answers", TIMEOUT, || {
            Ok(http::get_tcp(address, "/passwd")
                .ok()
                .map(|response| response.text()))
        })
    };
    assert!(page(&format!("{}:80", pod.ip))?.contains("app:x:1000"));
    assert!(page(&format!("{}:{host_port}", host_address(&containerd)))?.contains("app:x:1000"));

    let pid = truth.pid(&pod.container)?;
    containerd.kill9()?;
    containerd.resume()?;
    assert_eq!(
        truth.pid(&pod.container)?,
        pid,
        "containers outlive their containerd"
    );

    processes::kill(pid)?;
    wait::until("the runtime has noticed", TIMEOUT, || {
        Ok(truth
            .containers()?
            .iter()
            .all(|found| !found.is_running())
            .then_some(()))
    })?;
    let scratch = containerd.scratch().clone();
    assert!(
        !leftovers(&scratch)?.is_empty(),
        "a running instance is seen"
    );
    containerd.remove()?;
    Ok(scratch)
}

#[test]
fn leftovers_of_a_killed_run_are_removed() {
    let containerd = Containerd::start().unwrap();
    let truth = containerd.truth().unwrap();
    RawPod::start(&containerd, &truth, 8083).unwrap();
    let scratch = containerd.scratch().clone();
    // As after `kill -9`: everything is left, with a dead owner.
    std::fs::write(scratch.dir().join("owner"), "1 0").unwrap();
    std::mem::forget(containerd);

    // Another test may remove it.
    sweep().unwrap();

    let nothing: Vec<String> = Vec::new();
    assert_eq!(leftovers(&scratch).unwrap(), nothing);
}

/// A sandbox with one container, a web server, created without any agent.
struct RawPod {
    container: String,
    ip: String,
}

impl RawPod {
    fn start(containerd: &Containerd, truth: &CriTruth, host_port: i32) -> Result<Self> {
        let logs = containerd.scratch().subdir("logs")?;
        let config = sandbox_config(containerd, &logs, host_port);
        let sandbox = {
            let _alone = PORTMAP.lock();
            truth.block_on(truth.client().run_pod_sandbox(v1::RunPodSandboxRequest {
                config: Some(config.clone()),
                runtime_handler: String::new(),
            }))?
        };
        let container =
            truth.block_on(truth.client().create_container(v1::CreateContainerRequest {
                pod_sandbox_id: sandbox.pod_sandbox_id.clone(),
                config: Some(container_config(&config)),
                sandbox_config: Some(config),
            }))?;
        let container = container.container_id;
        truth.block_on(truth.client().start_container(v1::StartContainerRequest {
            container_id: container.clone(),
        }))?;
        let status = truth.block_on(truth.client().pod_sandbox_status(
            v1::PodSandboxStatusRequest {
                pod_sandbox_id: sandbox.pod_sandbox_id,
                verbose: false,
            },
        ))?;
        let network = status
            .status
            .and_then(|status| status.network)
            .unwrap_or_default();
        Ok(Self {
            container,
            ip: network.ip,
        })
    }
}

fn sandbox_config(containerd: &Containerd, logs: &Path, host_port: i32) -> v1::PodSandboxConfig {
    v1::PodSandboxConfig {
        metadata: Some(v1::PodSandboxMetadata {
            name: "web".into(),
            uid: "1".into(),
            namespace: "default".into(),
            attempt: 0,
        }),
        log_directory: logs.display().to_string(),
        port_mappings: vec![v1::PortMapping {
            protocol: v1::Protocol::Tcp.into(),
            container_port: 80,
            host_port,
            host_ip: String::new(),
        }],
        linux: Some(v1::LinuxPodSandboxConfig {
            cgroup_parent: format!("{}/pod1", containerd.scratch().cgroup_root()),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn container_config(sandbox: &v1::PodSandboxConfig) -> v1::ContainerConfig {
    let pod = sandbox.metadata.clone().unwrap_or_default().name;
    v1::ContainerConfig {
        metadata: Some(v1::ContainerMetadata {
            name: "httpd".into(),
            attempt: 0,
        }),
        image: Some(v1::ImageSpec {
            image: images::BUSYBOX_IMAGE.into(),
            ..Default::default()
        }),
        command: ["httpd", "-f", "-h", "/etc"].map(String::from).into(),
        labels: BTreeMap::from([("io.kubernetes.pod.name".into(), pod)]),
        log_path: "httpd.log".into(),
        linux: Some(v1::LinuxContainerConfig::default()),
        ..Default::default()
    }
}

/// The host's own address on the pods' network.
fn host_address(containerd: &Containerd) -> String {
    containerd.scratch().subnet().replace(".0/24", ".1")
}

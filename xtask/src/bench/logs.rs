//! The throughput of container output into a log that is rotated meanwhile.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use rubelet_testbed::{
    Agent, Containerd,
    agent::AgentRuntime,
    clock,
    containerd::{HostPorts, Line},
    images, wait,
};
use serde_json::json;

use super::{Request, embedded::environment, mib, progress, report::Results};

const TIMEOUT: Duration = Duration::from_secs(300);

/// One line of the container, its newline included.
const LINE: usize = 128;
/// The size of the text that is written repeatedly, in bytes.
const TEXT: usize = 64 << 20;
/// Number of repetitions: 4 GiB in all, many times what the log may keep.
const TIMES: usize = 64;

/// The last line of the container.
const END: &str = "that was all";

/// Measures `log_rotate_mib_s`, and prints the same for containerd.
pub(super) fn measure(request: &Request<'_>, results: &mut Results) -> Result<()> {
    let embedded = environment(request)?;
    progress("4 GiB through a log that is rotated");
    results.add("log_rotate_mib_s", throughput(request, &embedded)?);
    embedded.remove()?;
    let containerd = Containerd::start_line(Line::V2, HostPorts::None)?;
    let value = throughput(request, &containerd)?;
    progress(&format!("containerd: log_rotate_mib_s = {value:.2}"));
    containerd.remove()
}

/// MiB/s of output from when the container begins to write until it has written all.
fn throughput(request: &Request<'_>, runtime: &impl AgentRuntime) -> Result<f64> {
    let builder = Agent::builder(runtime).program(&request.program);
    let gate = builder.scratch().subdir("gate")?;
    fs::write(gate.join("text"), text())?;
    // The defaults of the kubelet: files of 10 MiB, five of them, checked every ten seconds. With the
    // embedded runtime, the shim's own limit applies first at this rate.
    let agent = builder.manifest("log.yaml", manifest(&gate)).start()?;
    wait_for(&gate, "ready")?;
    let began = clock::now();
    fs::write(gate.join("go"), "")?;
    wait_for(&gate, "done")?;
    let took = began.elapsed();
    let log = only_log(&agent)?;
    wait::until("the end is in the log", TIMEOUT, || {
        let text = fs::read_to_string(&log)?;
        Ok(text.trim_end().ends_with(END).then_some(()))
    })?;
    let directory = log.parent().context("the log is in a directory")?;
    let files = fs::read_dir(directory)?.count();
    ensure!((2..=6).contains(&files), "{files} files of the log");
    let bytes = (TEXT * TIMES) as u64;
    Ok(mib(bytes) / took.as_secs_f64())
}

fn wait_for(gate: &Path, name: &str) -> Result<()> {
    let there = || Ok(gate.join(name).exists().then_some(()));
    wait::until_every(Duration::from_millis(1), name, TIMEOUT, there)
}

fn text() -> Vec<u8> {
    let mut line = vec![b'x'; LINE - 1];
    line.push(b'\n');
    line.repeat(TEXT / LINE)
}

/// The current log of the only container.
fn only_log(agent: &Agent) -> Result<PathBuf> {
    let pod = fs::read_dir(agent.pod_logs_dir())?.flatten().next();
    Ok(pod.context("the pod has logs")?.path().join("main/0.log"))
}

fn manifest(gate: &Path) -> String {
    let script = format!(
        "cat /gate/text > /dev/null; touch /gate/ready; while [ ! -e /gate/go ]; do usleep 1000; done; \
         i=0; while [ $i -lt {TIMES} ]; do cat /gate/text; i=$((i + 1)); done; touch /gate/done; \
         echo {END}; while :; do sleep 3600; done"
    );
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "log" },
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main",
                "image": images::BUSYBOX_IMAGE,
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", script],
                "volumeMounts": [{ "name": "gate", "mountPath": "/gate" }],
            }],
            "volumes": [{ "name": "gate", "hostPath": { "path": gate } }],
        },
    })
    .to_string()
}

//! `cargo xtask demo`: runs three example pods on the embedded runtime, or on a private containerd,
//! and removes everything.

mod narration;
mod pods;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rubelet_testbed::cleanup::{mounts, processes};
use rubelet_testbed::runtime::{Kind, VARIABLE};
use rubelet_testbed::{
    Agent, Containerd, Embedded, TestRuntime, clock, http, images, leftovers, packages, wait,
};

use crate::{cargo, workspace};
use narration::{show, step};

/// Timeout of each wait on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The directory with the example pods.
const EXAMPLES: &str = "examples";

/// Their image.
const EXAMPLE_IMAGE: &str = "docker.io/library/busybox:1.37";

/// Runs the demo; returns an error if anything is not as expected.
pub(crate) fn run() -> Result<()> {
    let root = workspace::root()?;
    step("build rubelet");
    let program = cargo::agent(&root, false)?;
    let start = clock::now();

    let runtime = start_runtime(&program)?;
    let scratch = runtime.scratch().clone();
    run_pods(&root, &program, &runtime)?;

    step("stop what is left of the runtime and check that nothing is left behind");
    runtime.remove()?;
    let left = leftovers(&scratch)?;
    ensure!(left.is_empty(), "left behind:\n  {}", left.join("\n  "));
    show("no process, mount, cgroup, network interface, NAT rule or file is left");
    let seconds = start.elapsed().as_secs();
    println!("\ndemo: three pods ran, a killed container came back, nothing is left ({seconds} s)");
    Ok(())
}

/// The embedded runtime, unless the environment selects another one.
fn start_runtime(program: &Path) -> Result<TestRuntime> {
    let kind = match std::env::var_os(VARIABLE) {
        Some(_) => Kind::wanted()?,
        None => Kind::Embedded,
    };
    step("make private directories, and load images into the runtime");
    let installed = packages::ensure()?;
    if !installed.is_empty() {
        show(&format!("installed {}", installed.join(", ")));
    }
    if kind == Kind::Embedded {
        let embedded = Embedded::start_program(program)?;
        let dir = embedded.scratch().dir().display().to_string();
        show(&format!("the embedded runtime, everything below {dir}"));
        return Ok(embedded.into());
    }
    if kind == Kind::Crio {
        let crio = TestRuntime::start()?;
        let dir = crio.scratch().dir().display().to_string();
        show(&format!("CRI-O, everything below {dir}"));
        return Ok(crio);
    }
    let containerd = Containerd::start()?;
    show(&format!(
        "containerd {} of Debian {}, everything below {}",
        containerd.version(),
        containerd.suite(),
        containerd.scratch().dir().display()
    ));
    Ok(containerd.into())
}

fn run_pods(root: &Path, program: &Path, runtime: &TestRuntime) -> Result<()> {
    step("start rubelet with three manifests in its directory");
    let mut agent = Agent::builder(runtime)
        .program(program)
        .node_name("demo")
        .prepare()?;
    let manifests = copy_examples(root, &agent)?;
    show(&manifests.join(", "));
    agent.start()?;
    agent.wait_ready(TIMEOUT)?;

    step("wait until the web server and the pod with an init container are ready");
    pods::wait_ready(&agent, "web", TIMEOUT)?;
    pods::wait_ready(&agent, "init", TIMEOUT)?;
    command(&agent, &["get", "pods", "-o", "wide"])?;

    step("query the web server");
    let before = query_web(&agent)?;
    step("read what the init container prepared");
    command(&agent, &["logs", &agent.full_name("init")])?;

    step("the crashing pod is started again and again, with growing pauses");
    pods::wait_waiting(&agent, "crashing", "CrashLoopBackOff", TIMEOUT)?;
    command(&agent, &["get", "pods"])?;

    step("kill the web server's process, as a crash would");
    let truth = runtime.truth()?;
    let name = agent.full_name("web");
    let running = || truth.running(&name, "httpd");
    let first = running()?.context("the runtime doesn't know the web server's container")?;
    let pid = truth.pid(&first.id)?;
    processes::kill(pid)?;
    show(&format!(
        "killed process {pid} of container {}",
        &first.id[..12]
    ));
    let second = agent.wait_for("another container runs in its place", TIMEOUT, |_| {
        Ok(running()?.filter(|found| found.id != first.id))
    })?;
    ensure!(
        second.attempt == first.attempt + 1,
        "the new container is attempt {}",
        second.attempt
    );
    pods::wait_restarted(&agent, "web", TIMEOUT)?;
    command(&agent, &["get", "pods"])?;
    command(&agent, &["events"])?;
    let after = query_web(&agent)?;
    ensure!(
        after == before,
        "the web server answers something else than before"
    );

    step("take the manifests away and wait until the runtime has nothing left");
    for manifest in &manifests {
        agent.remove_manifest(manifest)?;
    }
    agent.wait_for(
        "the runtime has no sandbox and no container",
        TIMEOUT,
        |_| Ok((truth.sandboxes()?.is_empty() && truth.containers()?.is_empty()).then_some(())),
    )?;
    agent.wait_for("no mount is left", TIMEOUT, |_| {
        let left = mounts::below(runtime.scratch().dir())?;
        Ok(left.is_empty().then_some(()))
    })?;
    show("no container, no sandbox, no mount, no network namespace");

    step("stop rubelet");
    let status = agent.terminate()?;
    ensure!(
        status.success(),
        "rubelet ended with {status}\n{}",
        agent.circumstances()
    );
    show("it ended in order");
    Ok(())
}

/// Copies the example manifests into the agent's directory; returns their file names.
fn copy_examples(root: &Path, agent: &Agent) -> Result<Vec<String>> {
    let dir = root.join(EXAMPLES);
    let mut names = Vec::new();
    let entries =
        std::fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".yaml") {
            // No registry is available: the image was loaded into the runtime under another name.
            let manifest = std::fs::read_to_string(entry.path())?;
            let image = (EXAMPLE_IMAGE, images::BUSYBOX_IMAGE);
            ensure!(manifest.contains(image.0), "{name} has another image");
            agent.write_manifest(&name, &manifest.replace(image.0, image.1))?;
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Runs a command of rubelet as a user would, and shows its output.
fn command(agent: &Agent, words: &[&str]) -> Result<()> {
    println!("    $ rubelet {}", words.join(" "));
    let output = agent.cli(words)?;
    show(output.stdout.trim_end());
    ensure!(
        output.code == 0,
        "`rubelet {}` ended with {}: {}\n{}",
        words.join(" "),
        output.code,
        output.stderr.trim(),
        agent.circumstances()
    );
    Ok(())
}

fn query_web(agent: &Agent) -> Result<String> {
    let pod = agent.pod("web")?.context("the pod web is gone")?;
    let ip = pod["status"]["podIP"]
        .as_str()
        .context("the pod web has no address")?
        .to_owned();
    let address = format!("{ip}:8080");
    let response = wait::until("the web server answers", TIMEOUT, || {
        Ok(http::get_tcp(&address, "/").ok())
    })?;
    println!("    GET http://{address}/ -> {}", response.status);
    show(response.text().trim_end());
    ensure!(
        response.status == 200,
        "the web server answered {}",
        response.status
    );
    Ok(response.text())
}

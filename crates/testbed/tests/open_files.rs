//! The limit of open files: the agent raises its own, and child processes have the one that the
//! agent was started with.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rubelet_testbed::agent::AgentBuilder;
use rubelet_testbed::manifest::{WAIT, pod, shell, waiting, with};
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::scratch::lock;
use rubelet_testbed::{Agent, Embedded, Node, TestRuntime, images, proc, wait};
use serde_json::json;

/// A program that writes its limit to a file, and responds like a CNI plugin.
const PLUGIN: &str = r#"#!/bin/sh
ulimit -Sn > "${0%/*}/seen-by-${0##*/}"
[ "$CNI_COMMAND" = ADD ] && echo '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"'$CNI_NETNS'"}],"ips":[{"address":"10.99.0.7/24","interface":0}]}'
exit 0
"#;

/// Writes a program.
fn write_program(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text)?;
    Ok(fs::set_permissions(path, PermissionsExt::from_mode(0o755))?)
}

/// An agent that is started with one limit and configured with another.
fn with_limits(builder: AgentBuilder, soft: u32, wanted: u32) -> Result<AgentBuilder> {
    let builder = builder.started_with_open_files(soft)?;
    Ok(builder.config("maxOpenFiles", wanted))
}

/// The soft limit of a process.
fn soft_limit(pid: u32) -> Result<String> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits"))?;
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let word = line.and_then(|line| line.split_whitespace().nth(3));
    Ok(word.context("no limit of open files")?.to_owned())
}

fn pid_of(agent: &Agent) -> Result<u32> {
    agent.pid().context("the agent runs")
}

#[test]
fn open_file_limits_of_children_are_restored() -> Result<()> {
    let runtime = TestRuntime::start()?;
    let builder = with_limits(Agent::builder(&runtime), 1024, 4096)?;
    let plugins = runtime.scratch().subdir("plugins")?;
    write_program(&plugins.join("login"), PLUGIN)?;
    let providers = plugins.join("providers.json");
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1",
        "kind": "CredentialProviderConfig",
        "providers": [{
            "name": "login",
            "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
            "matchImages": ["limits.invalid"],
            "defaultCacheDuration": "1m",
        }],
    });
    fs::write(&providers, config.to_string())?;
    let flags = [
        format!("--image-credential-provider-config={}", providers.display()),
        format!("--image-credential-provider-bin-dir={}", plugins.display()),
    ];
    let node = Node::start_on(runtime, |_| {
        flags.into_iter().fold(builder, AgentBuilder::flag)
    })?;
    assert_eq!(soft_limit(pid_of(node.agent())?)?, "4096");

    let foreign = with(waiting("main"), &json!({ "image": "limits.invalid/app:1" }));
    node.apply(&pod("foreign", &json!({ "containers": [foreign] })))?;
    let seen = plugins.join("seen-by-login");
    let told = wait::until("the plugin was asked", Duration::from_secs(60), || {
        let text = fs::read_to_string(&seen).unwrap_or_default();
        Ok((!text.is_empty()).then_some(text))
    });
    assert_eq!(told?, "1024\n");
    // Another runtime sets its own limits for containers.
    if node.runtime().kind() != Kind::Embedded {
        return Ok(());
    }
    let tells = shell("main", &format!("ulimit -Sn; {WAIT}"));
    node.apply(&pod("web", &json!({ "containers": [tells] })))?;
    node.wait_ready("web")?;
    assert_eq!(node.wait_log("web", "main", "\n")?, "1024\n");
    let by_exec = node.exec("web", "main", &["sh", "-c", "ulimit -Sn"])?;
    assert_eq!(by_exec.trim(), "1024");
    Ok(())
}

#[test]
fn cni_plugins_have_the_original_open_file_limit() -> Result<()> {
    let embedded = Embedded::start()?;
    let bin = embedded.cni_bin_dir();
    fs::create_dir_all(&bin)?;
    write_program(&bin.join("tells"), PLUGIN)?;
    let list = json!({ "cniVersion": "1.0.0", "name": "tells", "plugins": [{ "type": "tells" }] });
    fs::write(
        embedded.cni_conf_dir().join("10-tells.conflist"),
        list.to_string(),
    )?;
    let builder = with_limits(Agent::builder(&embedded), 1024, 4096)?;
    let node = Node::start_on(embedded, |_| builder)?;
    node.apply(&pod("web", &json!({ "containers": [waiting("main")] })))?;
    node.wait_ready("web")?;
    assert_eq!(fs::read_to_string(bin.join("seen-by-tells"))?, "1024\n");
    Ok(())
}

/// Pods on the host's network start sooner than those with a network of their own.
#[test]
fn a_thousand_pods_run_under_the_usual_limit_of_1024() -> Result<()> {
    const PODS: usize = 1000;
    const LIMIT: u32 = 1024;
    /// Enough for a slow machine.
    const STARTS: Duration = Duration::from_secs(400);
    let inside = Kind::wanted()? == Kind::Embedded;
    if !rubelet_needs::applies(inside, "it is about the embedded runtime") {
        return Ok(());
    }
    let _lock = lock::shortage()?;
    let embedded = Embedded::start()?.with_run_dir_in_memory()?;
    let builder = Agent::builder(&embedded).started_with_open_files(LIMIT)?;
    let mut builder = builder.config("maxPods", PODS + 10);
    for number in 0..PODS {
        let main = json!({ "name": "main", "image": images::PAUSE, "imagePullPolicy": "Never" });
        let spec = json!({ "hostNetwork": true, "containers": [main] });
        let name = format!("p{number}");
        builder = builder.manifest(format!("{name}.json"), pod(&name, &spec).to_string());
    }
    let agent = builder.start()?;
    let all = format!("{PODS}/{PODS} pods ready");
    agent.wait_notification("all pods are ready", STARTS, |told| {
        told.status().is_some_and(|status| status.starts_with(&all))
    })?;
    let open = proc::open_files(pid_of(&agent)?).len();
    eprintln!("{PODS} pods have {open} files open");
    ensure!(
        open > LIMIT as usize,
        "only {open} files are open: this shows nothing"
    );
    Ok(())
}

//! Limits: at creation and by UpdateContainerResources, OOM kills.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use futures_util::future::join_all;
use rubelet_cri::v1::{self, LinuxContainerResources as Resources};
use rubelet_cri::{CriResult, RuntimeService};
use rubelet_cri_grpc::CriClient;
use rubelet_testbed::cleanup::cgroups;
use rubelet_testbed::runtime::Kind;

use crate::subject::{Sandbox, Subject, WAITING, not_found, stop};

const MIB: i64 = 1 << 20;

/// The file names of one limit, in cgroup version 2 and version 1.
const MEMORY: [&str; 2] = ["memory.max", "memory.limit_in_bytes"];
const QUOTA: [&str; 2] = ["cpu.max", "cpu.cfs_quota_us"];

/// A file in the cgroup of a container.
fn file(subject: &Subject, id: &str, names: [&str; 2]) -> Result<PathBuf> {
    let found = cgroups::of(subject.runtime.scratch().tag())?;
    found
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(id))
        .flat_map(|path| names.map(|name| path.join(name)))
        .find(|path| path.exists())
        .with_context(|| format!("container {id} has no {names:?}"))
}

fn value(subject: &Subject, id: &str, names: [&str; 2]) -> Result<String> {
    let path = file(subject, id, names)?;
    let text = std::fs::read_to_string(&path)?;
    Ok(text
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned())
}

fn limited(
    sandbox: &Sandbox<'_>,
    name: &str,
    script: &str,
    resources: Resources,
) -> v1::ContainerConfig {
    let mut config = sandbox.script(name, script);
    config.linux.get_or_insert_default().resources = Some(resources);
    config
}

async fn update(client: &CriClient, id: &str, linux: Resources) -> CriResult<()> {
    let request = v1::UpdateContainerResourcesRequest {
        container_id: id.to_owned(),
        linux: Some(linux),
        ..Default::default()
    };
    client.update_container_resources(request).await.map(drop)
}

fn first() -> Resources {
    Resources {
        cpu_period: 100_000,
        cpu_quota: 50_000,
        cpu_shares: 512,
        memory_limit_in_bytes: 64 * MIB,
        ..Default::default()
    }
}

#[test]
fn limits_are_applied_reported_and_updated() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("limits")?;
    let id = sandbox.start(limited(&sandbox, "main", WAITING, first()))?;
    assert_eq!(value(&subject, &id, MEMORY)?, (64 * MIB).to_string());
    assert_eq!(value(&subject, &id, QUOTA)?, "50000");
    let shown = sandbox
        .status(&id)?
        .resources
        .and_then(|all| all.linux)
        .unwrap_or_default();
    assert_eq!(shown.cpu_quota, 50_000);
    assert_eq!(shown.memory_limit_in_bytes, 64 * MIB);

    let more = Resources {
        cpu_quota: 70_000,
        memory_limit_in_bytes: 96 * MIB,
        ..first()
    };
    subject.ask(update(subject.client(), &id, more))?;
    assert_eq!(value(&subject, &id, MEMORY)?, (96 * MIB).to_string());
    assert_eq!(value(&subject, &id, QUOTA)?, "70000");
    let shown = sandbox
        .status(&id)?
        .resources
        .and_then(|all| all.linux)
        .unwrap_or_default();
    assert_eq!((shown.cpu_quota, shown.cpu_period), (70_000, 100_000));
    assert_eq!(shown.memory_limit_in_bytes, 96 * MIB);

    // Limits that are not given are unchanged.
    let less = Resources {
        memory_limit_in_bytes: 48 * MIB,
        ..Default::default()
    };
    subject.ask(update(subject.client(), &id, less))?;
    assert_eq!(value(&subject, &id, MEMORY)?, (48 * MIB).to_string());
    assert_eq!(value(&subject, &id, QUOTA)?, "70000");
    Ok(())
}

#[test]
fn limits_of_a_created_container_can_be_updated() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("early")?;
    let id = sandbox.create(limited(&sandbox, "main", WAITING, first()))?;
    let more = Resources {
        memory_limit_in_bytes: 80 * MIB,
        ..first()
    };
    subject.ask(update(subject.client(), &id, more))?;
    subject.ask(crate::subject::start(subject.client(), &id))?;
    assert_eq!(value(&subject, &id, MEMORY)?, (80 * MIB).to_string());
    Ok(())
}

#[test]
fn one_of_concurrent_updates_wins() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("changes")?;
    let id = sandbox.start(limited(&sandbox, "main", WAITING, first()))?;
    let client = subject.client();
    let id = id.as_str();
    let answers = subject.ask(join_all((1..=5).map(|number| {
        let resources = Resources {
            memory_limit_in_bytes: (64 + number) * MIB,
            ..first()
        };
        update(client, id, resources)
    })));
    assert!(answers.iter().all(Result::is_ok), "{answers:#?}");
    let shown = sandbox
        .status(id)?
        .resources
        .and_then(|all| all.linux)
        .unwrap_or_default();
    let real: i64 = value(&subject, id, MEMORY)?.parse()?;
    assert!((65..=69).any(|number| real == number * MIB));
    assert_eq!(
        shown.memory_limit_in_bytes, real,
        "what is shown is what holds"
    );
    Ok(())
}

#[test]
fn missing_and_exited_containers_are_not_updated() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("over")?;
    let client = subject.client();
    not_found(subject.ask(update(client, &"b".repeat(64), first())));
    let id = sandbox.waiting("main")?;
    subject.ask(stop(client, &id, 10))?;
    let answer = subject.ask(update(client, &id, first()));
    // Containerd accepts it and does nothing.
    if subject.is_embedded() {
        subject.wrong_state(answer);
    }
    Ok(())
}

#[test]
fn oom_kills_are_distinguished_from_other_kills() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("oom")?;
    let resources = Resources {
        memory_limit_in_bytes: 16 * MIB,
        ..Default::default()
    };
    // Awk accumulates a growing text.
    let script = "exec awk 'BEGIN { s = \"x\"; while (1) s = s s }'";
    let id = sandbox.start(limited(&sandbox, "main", script, resources))?;
    let ended = sandbox.ended(&id)?;
    assert_eq!(ended.exit_code, 137);
    if subject.is_embedded() {
        assert_eq!(ended.reason, "OOMKilled");
    } else {
        // Containerd sometimes learns of it only after the exit.
        assert!(["OOMKilled", "Error"].contains(&ended.reason.as_str()));
    }
    Ok(())
}

#[test]
fn processes_of_a_pod_are_in_the_requested_cgroup() -> Result<()> {
    let subject = Subject::shared()?;
    let sandbox = subject.sandbox("placed")?;
    let id = sandbox.waiting("main")?;
    let pid = subject.truth.pid(&id)?;
    let parent = sandbox
        .config
        .linux
        .clone()
        .unwrap_or_default()
        .cgroup_parent;
    let own = std::fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let is_unified = std::path::Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let own = own.lines();
    // With cgroup version 2 all controllers are in one hierarchy.
    let with_controllers: Vec<&str> = own
        .filter(|line| {
            let mut marks = [":memory:", ":pids:"].iter();
            marks.any(|mark| line.contains(mark)) || is_unified && line.starts_with("0::")
        })
        .collect();
    assert!(!with_controllers.is_empty());
    let name = Kind::wanted()?.cgroup_name(&id)?;
    for line in with_controllers {
        assert!(line.ends_with(&format!("{parent}/{name}")), "{line}");
    }
    Ok(())
}

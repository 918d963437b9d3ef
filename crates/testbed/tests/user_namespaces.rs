//! Pods with `hostUsers: false`: root inside, unprivileged outside, each with its own range of ids.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;

use anyhow::{Context as _, Result};
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{pod, shell, with};
use rubelet_testbed::runtime::Kind;
use serde_json::{Value, json};

/// Writes into a volume as root, and prints the id mapping.
const SCRIPT: &str = "id -u; cut -c1-80 /proc/self/uid_map; echo mine > /data/made; \
                      ls -ln /data/made /etc/hosts | awk '{print $3}'; echo ready; sleep 1000";

fn own_users(name: &str) -> Value {
    let mounts = json!({ "volumeMounts": [{ "name": "data", "mountPath": "/data" }] });
    let spec = json!({
        "hostUsers": false,
        "terminationGracePeriodSeconds": 0,
        "containers": [with(shell("main", SCRIPT), &mounts)],
        "volumes": [{ "name": "data", "emptyDir": {} }],
    });
    pod(name, &spec)
}

/// The first host uid of a pod, from its container's output.
fn first_user(node: &Node, name: &str) -> Result<u32> {
    let log = node.wait_log(name, "main", "ready")?;
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!((lines[0], &lines[2..4]), ("0", &["0", "0"][..]), "{log}");
    let map: Vec<u32> = lines[1]
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    assert_eq!((map[0], map[2]), (0, 65_536), "{log}");
    Ok(map[1])
}

#[test]
fn a_pod_in_its_own_user_namespace_is_root_inside_only() -> Result<()> {
    let mut node = Node::start()?;
    if Kind::wanted()? != Kind::Embedded {
        // Debian 12's runc is too old for the mounts of such pods, and reports it.
        node.apply(&own_users("alone"))?;
        node.wait_event("alone", "FailedCreatePodSandBox", "user namespaces")?;
        return Ok(());
    }
    node.apply(&own_users("one"))?;
    node.apply(&own_users("two"))?;
    let users = [first_user(&node, "one")?, first_user(&node, "two")?];
    assert_eq!(BTreeSet::from(users).len(), 2, "{users:?}");
    for user in users {
        assert!(user >= 65_536 && user % 65_536 == 0, "{users:?}");
    }
    let running = node.running("one", "main")?;
    let pid = node.truth().pid(&running.id)?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    assert!(
        status.contains(&format!("\nUid:\t{}\t", users[0])),
        "{status}"
    );
    let directory = node.pod_dir("one")?;
    let made = directory.join("volumes/kubernetes.io~empty-dir/data/made");
    assert_eq!(std::fs::metadata(made)?.uid(), 0, "the mount maps ids back");
    let record: Value = serde_json::from_slice(&std::fs::read(directory.join("userns"))?)?;
    let first = record["uidMappings"][0]["hostId"].as_u64();
    assert_eq!(first, Some(users[0].into()), "{record}");

    node.agent_mut().restart()?;
    node.apply(&own_users("three"))?;
    let third = first_user(&node, "three")?;
    assert!(!users.contains(&third), "{third} of {users:?}");
    let same = node.running("one", "main").context("after a restart")?;
    assert_eq!(same.id, running.id);
    Ok(())
}

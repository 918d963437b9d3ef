//! Compares the runtime's state with the desired pods and with the agent's API.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use rubelet_testbed::cri_truth::{Container, ContainerState, Sandbox};
use rubelet_testbed::{Agent, status};
use serde_json::Value;

use super::node::Node;
use super::pods::{DesiredPods, Pod, PodKind};

/// Fails if a container of a pod exists twice, which is never allowed.
pub(super) fn check_no_duplicates(node: &Node) -> Result<()> {
    find_duplicate(node.truth.containers()?).map_or(Ok(()), |duplicate| bail!("{duplicate}"))
}

/// The duplicate of a container, as text: two attempts of it run, or one attempt exists twice and
/// neither has exited.
fn find_duplicate(containers: Vec<Container>) -> Option<String> {
    let mut running: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut live: BTreeMap<(String, String, u32), String> = BTreeMap::new();
    for one in containers.into_iter().filter(is_live) {
        let what = format!("container {} of pod {}", one.name, one.pod);
        let runs = one.is_running();
        let key = (one.pod.clone(), one.name.clone(), one.attempt);
        if let Some(other) = live.insert(key, one.id.clone()) {
            let duplicate = format!(
                "attempt {} exists twice, as {other} and {}",
                one.attempt, one.id
            );
            return Some(format!("{what}: {duplicate}"));
        }
        let id = one.id.clone();
        if runs && let Some(other) = running.insert((one.pod, one.name), one.id) {
            return Some(format!("{what} runs twice, as {other} and {id}"));
        }
    }
    None
}

/// Whether it was created and has not exited.
fn is_live(container: &Container) -> bool {
    matches!(
        container.state,
        ContainerState::ContainerCreated | ContainerState::ContainerRunning
    )
}

/// All differences, a line for each; nothing if there are none.
pub(super) fn differences(node: &Node, wanted: &DesiredPods) -> Result<Vec<String>> {
    let held = RuntimeObjects {
        sandboxes: node.truth.sandboxes()?,
        containers: node.truth.containers()?,
    };
    let shown = shown(&node.agent)?;
    let mut found = Vec::new();
    for pod in wanted.iter() {
        let full = node.agent.full_name(&pod.name);
        let shown = shown
            .iter()
            .find(|shown| shown["metadata"]["name"] == *full);
        let Some(shown) = shown else {
            found.push(format!("{full} is desired, but the agent does not show it"));
            continue;
        };
        found.extend(held.check(&full, pod, shown));
        if found.is_empty() {
            found.extend(check_version(node, &held, &full, pod)?);
        }
    }
    let names: BTreeSet<String> = wanted
        .iter()
        .map(|pod| node.agent.full_name(&pod.name))
        .collect();
    found.extend(held.check_rest(&names));
    for pod in &shown {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        if !names.contains(name) {
            found.push(format!("{name} is not desired, but the agent shows it"));
        }
    }
    Ok(found)
}

/// All pods, as a user sees them.
fn shown(agent: &Agent) -> Result<Vec<Value>> {
    let printed = agent.cli(&["get", "pods", "-o", "json"])?;
    if printed.code != 0 {
        bail!("`rubelet get pods` failed: {}", printed.stderr.trim());
    }
    let mut list: Value = serde_json::from_str(&printed.stdout)?;
    match list["items"].take() {
        Value::Array(items) => Ok(items),
        _ => bail!("`rubelet get pods -o json` printed no list"),
    }
}

/// The runtime's lists.
struct RuntimeObjects {
    sandboxes: Vec<Sandbox>,
    containers: Vec<Container>,
}

impl RuntimeObjects {
    fn check(&self, full: &str, pod: &Pod, shown: &Value) -> Vec<String> {
        let mut found = Vec::new();
        let ready = self
            .sandboxes
            .iter()
            .filter(|sandbox| sandbox.pod == full && sandbox.ready)
            .count();
        let ended = pod.kind == PodKind::Job;
        if ready != usize::from(!ended) {
            found.push(format!("{full} has {ready} ready sandboxes"));
        }
        if ended && !status::has_ended(shown) {
            let phase = &shown["status"]["phase"];
            found.push(format!(
                "{full} should have completed, but the agent shows phase {phase}"
            ));
        }
        let own: Vec<&Container> = self.containers.iter().filter(|it| it.pod == full).collect();
        for name in pod.running() {
            let running: Vec<&str> = own
                .iter()
                .filter(|it| it.name == *name && is_live(it))
                .map(|it| it.id.as_str())
                .collect();
            let id = bare(status::id(shown, name));
            if running != [id] {
                found.push(format!(
                    "{full}/{name}: the runtime has {running:?}, the agent shows {id:?}"
                ));
            }
            if !status::runs(shown, name) {
                found.push(format!("{full}/{name} is not shown as running"));
            }
        }
        if !pod.running().is_empty() && !status::is_ready(shown) {
            found.push(format!("{full} is not shown as ready"));
        }
        // If a container crashes repeatedly, the runtime may already have a newer one.
        for (name, id) in ids(shown) {
            if !own.iter().any(|it| it.id == id && it.name == name) {
                found.push(format!(
                    "{full}/{name}: the agent shows {id}, which the runtime does not have"
                ));
            }
        }
        found
    }

    /// Objects that belong to no desired pod.
    fn check_rest(&self, names: &BTreeSet<String>) -> Vec<String> {
        let sandboxes = self.sandboxes.iter().map(|it| ("sandbox", &it.pod, &it.id));
        let containers = self
            .containers
            .iter()
            .map(|it| ("container", &it.pod, &it.id));
        sandboxes
            .chain(containers)
            .filter(|(_, pod, _)| !names.contains(*pod))
            .map(|(what, pod, id)| format!("{what} {id} of {pod} was not removed"))
            .collect()
    }
}

/// Whether the container `main` is the one of the last edit.
fn check_version(
    node: &Node,
    held: &RuntimeObjects,
    full: &str,
    pod: &Pod,
) -> Result<Option<String>> {
    if pod.running().is_empty() || pod.version == 1 {
        return Ok(None);
    }
    let main = held
        .containers
        .iter()
        .find(|it| it.pod == full && it.name == "main" && it.is_running());
    let main = main.context("a container that ran has exited")?;
    let version = node.truth.exec(&main.id, &["sh", "-c", "echo $VERSION"])?;
    let wanted = pod.version.to_string();
    let differs = version.trim() != wanted;
    Ok(differs.then(|| format!("{full} runs version {}, not {wanted}", version.trim())))
}

/// Name and ID of each container that the agent shows with an ID.
fn ids(shown: &Value) -> Vec<(&str, &str)> {
    ["containerStatuses", "initContainerStatuses"]
        .into_iter()
        .filter_map(|list| shown["status"][list].as_array())
        .flatten()
        .filter_map(|status| {
            let id = bare(status["containerID"].as_str()?);
            (!id.is_empty()).then_some((status["name"].as_str()?, id))
        })
        .collect()
}

/// A container ID without the runtime's prefix.
fn bare(id: &str) -> &str {
    id.rsplit("//").next().unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(id: &str, name: &str, attempt: u32, state: ContainerState) -> Container {
        Container {
            id: id.to_owned(),
            sandbox: "s".to_owned(),
            pod: "p".to_owned(),
            name: name.to_owned(),
            attempt,
            state,
            created_at: 0,
            restart_count: None,
        }
    }

    fn sandbox(id: &str, ready: bool) -> Sandbox {
        Sandbox {
            id: id.to_owned(),
            pod: "p".to_owned(),
            namespace: "default".to_owned(),
            uid: "u".to_owned(),
            attempt: 0,
            ready,
        }
    }

    #[test]
    fn a_duplicate_container_is_found() {
        use ContainerState::{
            ContainerCreated as Created, ContainerExited as Exited, ContainerRunning as Running,
        };
        let runs = "container main of pod p runs twice, as a and b";
        let same = "container main of pod p: attempt 0 exists twice, as a and b";
        for (second, twice) in [
            (container("b", "main", 1, Running), Some(runs)),
            (container("b", "main", 0, Running), Some(same)),
            (container("b", "main", 0, Created), Some(same)),
            (container("b", "main", 1, Created), None),
            (container("b", "main", 0, Exited), None),
            (container("b", "other", 0, Running), None),
        ] {
            let first = container("a", "main", 0, Running);
            let duplicate = find_duplicate(vec![first, second.clone()]);
            assert_eq!(duplicate.as_deref(), twice, "{second:?}");
        }
    }

    fn wanted(kind: PodKind) -> Pod {
        Pod {
            name: "p".to_owned(),
            kind,
            version: 1,
        }
    }

    fn shown(id: &str, ready: &str) -> Value {
        serde_json::json!({ "status": {
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": ready }],
            "containerStatuses": [
                { "name": "main", "containerID": format!("containerd://{id}"),
                  "state": { "running": {} } },
            ],
        }})
    }

    #[test]
    fn each_difference_is_reported() {
        use ContainerState::{ContainerExited as Exited, ContainerRunning as Running};
        let good = || RuntimeObjects {
            sandboxes: vec![sandbox("s", true)],
            containers: vec![container("a", "main", 0, Running)],
        };
        let check = |held: &RuntimeObjects, shown: &Value| {
            held.check("p", &wanted(PodKind::Init), shown).len()
        };
        assert_eq!(check(&good(), &shown("a", "True")), 0);
        assert_ne!(check(&good(), &shown("b", "True")), 0);
        assert_ne!(check(&good(), &shown("a", "False")), 0);
        for change in [
            (|held: &mut RuntimeObjects| held.sandboxes.clear()) as fn(&mut RuntimeObjects),
            |held| held.sandboxes.push(sandbox("t", true)),
            |held| held.containers.clear(),
            |held| held.containers[0].state = Exited,
            |held| held.containers.push(container("b", "main", 1, Running)),
        ] {
            let mut held = good();
            change(&mut held);
            assert_ne!(check(&held, &shown("a", "True")), 0);
        }
        let job = good().check("p", &wanted(PodKind::Job), &shown("a", "True"));
        assert_eq!(
            job.len(),
            2,
            "it has neither completed nor lost its sandbox: {job:?}"
        );
        assert_eq!(good().check_rest(&BTreeSet::new()).len(), 2);
        assert_eq!(good().check_rest(&["p".to_owned()].into()).len(), 0);
    }
}

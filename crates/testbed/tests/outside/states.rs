//! States of pods in the agent's API.

use anyhow::Result;
use rubelet_testbed::Agent;
use rubelet_testbed::status::is_ready;
use serde_json::Value;

use super::TIMEOUT;

/// Waits until there are exactly `count` pods and all of them are ready or have succeeded.
pub(crate) fn wait_all_ready(agent: &Agent, count: usize) {
    agent
        .wait_for(&format!("{count} pods are ready"), TIMEOUT, |agent| {
            let pods = agent.pods()?;
            Ok((pods.len() == count && pods.iter().all(is_settled)).then_some(()))
        })
        .unwrap();
}

/// Waits until the static pod `name` meets a condition; returns it.
pub(crate) fn wait_pod(
    agent: &Agent,
    name: &str,
    what: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Value {
    let what = format!("the pod {name} {what}");
    let found = agent.wait_for(&what, TIMEOUT, |agent| {
        Ok(agent.pod(name)?.filter(|pod| wanted(pod)))
    });
    found.unwrap()
}

/// Waits until the static pod `name` is ready; returns it.
pub(crate) fn wait_ready(agent: &Agent, name: &str) -> Value {
    wait_pod(agent, name, "is ready", is_ready)
}

/// Waits until the static pod `name` is gone.
pub(crate) fn wait_gone(agent: &Agent, name: &str) {
    agent
        .wait_for(&format!("the pod {name} is gone"), TIMEOUT, |agent| {
            Ok(agent.pod(name)?.is_none().then_some(()))
        })
        .unwrap();
}

fn is_settled(pod: &Value) -> bool {
    is_ready(pod) || pod["status"]["phase"] == "Succeeded"
}

/// Restart counts of all containers, including init containers, by name.
pub(crate) fn restarts(pod: &Value) -> Vec<(String, u64)> {
    ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .filter_map(|list| pod["status"][list].as_array())
        .flatten()
        .map(|status| {
            let name = status["name"].as_str().unwrap_or_default().to_owned();
            (name, status["restartCount"].as_u64().unwrap_or(u64::MAX))
        })
        .collect()
}

/// The manifest whose path has this suffix, from `get manifests -o json`.
pub(crate) fn manifest(agent: &Agent, file: &str) -> Result<Option<Value>> {
    let mut list = agent.get_json("/apis/node.rubelet.dev/v1alpha1/manifests")?;
    let Value::Array(items) = list["items"].take() else {
        return Ok(None);
    };
    let ending = format!("/{file}");
    Ok(items.into_iter().find(|item| {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        name.ends_with(&ending)
    }))
}

/// Waits until the manifest whose path has this suffix is in this state; returns it.
pub(crate) fn wait_manifest(agent: &Agent, file: &str, state: &str) -> Value {
    let what = format!("the manifest {file} is {state}");
    let found = agent.wait_for(&what, TIMEOUT, |agent| {
        let found = manifest(agent, file)?;
        Ok(found.filter(|manifest| manifest["status"]["state"] == state))
    });
    found.unwrap()
}

/// The events with this reason.
pub(crate) fn events(agent: &Agent, reason: &str) -> Result<Vec<Value>> {
    let mut list = agent.get_json("/api/v1/events")?;
    let Value::Array(mut items) = list["items"].take() else {
        return Ok(Vec::new());
    };
    items.retain(|event| event["reason"] == reason);
    Ok(items)
}

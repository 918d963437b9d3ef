//! States of pods that the demo waits for, read from the agent's API.

use std::time::Duration;

use anyhow::Result;
use rubelet_testbed::Agent;
use rubelet_testbed::status::is_ready;
use serde_json::Value;

/// Waits until the pod is ready.
pub(super) fn wait_ready(agent: &Agent, name: &str, timeout: Duration) -> Result<()> {
    wait(agent, name, "is ready", timeout, is_ready)
}

/// Waits until the pod is ready, with a container that was restarted.
pub(super) fn wait_restarted(agent: &Agent, name: &str, timeout: Duration) -> Result<()> {
    wait(agent, name, "is ready again", timeout, |pod| {
        is_ready(pod) && restarts(pod) > 0
    })
}

/// Waits until the pod's first container waits for the given reason.
pub(super) fn wait_waiting(
    agent: &Agent,
    name: &str,
    reason: &str,
    timeout: Duration,
) -> Result<()> {
    wait(
        agent,
        name,
        &format!("waits with {reason}"),
        timeout,
        |pod| pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == reason,
    )
}

fn wait(
    agent: &Agent,
    name: &str,
    what: &str,
    timeout: Duration,
    wanted: impl Fn(&Value) -> bool,
) -> Result<()> {
    agent.wait_for(&format!("the pod {name} {what}"), timeout, |agent| {
        Ok(agent.pod(name)?.filter(&wanted).map(drop))
    })
}

fn restarts(pod: &Value) -> u64 {
    let statuses = pod["status"]["containerStatuses"].as_array();
    statuses
        .into_iter()
        .flatten()
        .filter_map(|status| status["restartCount"].as_u64())
        .sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn readiness_and_restarts_are_read_from_the_pods_status() {
        let pod = json!({ "status": {
            "conditions": [
                { "type": "PodScheduled", "status": "True" },
                { "type": "Ready", "status": "True" },
            ],
            "containerStatuses": [{ "restartCount": 1 }, { "restartCount": 2 }],
        }});
        assert!(is_ready(&pod));
        assert_eq!(restarts(&pod), 3);
        assert!(!is_ready(&json!({})));
    }
}

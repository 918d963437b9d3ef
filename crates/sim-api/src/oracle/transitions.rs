//! Transitions of a pod's status that go backwards, which no node may make. Pure.

use serde_json::Value;

use crate::meta::{entries, number, text};

const LISTS: [&str; 3] = [
    "/status/initContainerStatuses",
    "/status/containerStatuses",
    "/status/ephemeralContainerStatuses",
];

/// The backward transitions between two states of a pod.
pub(crate) fn backward_transitions(old: &Value, new: &Value) -> Vec<String> {
    let mut transitions = Vec::new();
    let (was, is) = (text(old, "/status/phase"), text(new, "/status/phase"));
    let terminal = ["Succeeded", "Failed"];
    if terminal.contains(&was) && was != is {
        transitions.push(format!("the phase went from {was} to {is:?}"));
    }
    // With init containers it is pending again when its sandbox is recreated.
    let begins_again = !entries(new, "/spec/initContainers").is_empty();
    if was == "Running" && ["Pending", ""].contains(&is) && !begins_again {
        transitions.push(format!("the phase went from Running to {is:?}"));
    }
    let started = |pod| text(pod, "/status/startTime").to_owned();
    if !started(old).is_empty() && started(old) != started(new) {
        transitions.push(format!(
            "startTime went from {} to {:?}",
            started(old),
            started(new)
        ));
    }
    let generation = |pod| number(pod, "/status/observedGeneration").unwrap_or(0);
    if generation(new) < generation(old) {
        transitions.push(format!(
            "observedGeneration went from {} to {}",
            generation(old),
            generation(new)
        ));
    }
    for list in LISTS {
        for was in entries(old, list) {
            let name = text(was, "/name");
            let found = entries(new, list)
                .iter()
                .find(|is| text(is, "/name") == name);
            match found {
                Some(is) => transitions.extend(container_transition(name, was, is)),
                None => transitions.push(format!("the status of container {name} is gone")),
            }
        }
    }
    transitions
}

fn container_transition(name: &str, was: &Value, is: &Value) -> Option<String> {
    let restarts = |status| number(status, "/restartCount").unwrap_or(0);
    if restarts(is) < restarts(was) {
        return Some(format!(
            "container {name}: restartCount went from {} to {}",
            restarts(was),
            restarts(is)
        ));
    }
    let id = |status, state| text(status, &format!("{state}/containerID")).to_owned();
    let (before, after) = (state(was), state(is));
    let wrong = match (before, after) {
        ("running", "waiting") => is.pointer("/lastState/terminated").is_none(),
        ("running", "running") => {
            let ids = (text(was, "/containerID"), text(is, "/containerID"));
            ids.0 != ids.1 && restarts(is) == restarts(was)
        }
        ("terminated", "waiting") => is.pointer("/lastState/terminated").is_none(),
        ("terminated", "running") => {
            let ended = id(was, "/state/terminated");
            !ended.is_empty() && ended == text(is, "/containerID")
        }
        _ => false,
    };
    wrong.then(|| format!("container {name} went from {before} to {after}"))
}

fn state(status: &Value) -> &'static str {
    ["terminated", "running"]
        .into_iter()
        .find(|state| {
            let place = format!("/state/{state}");
            status.pointer(&place).is_some_and(|found| !found.is_null())
        })
        .unwrap_or("waiting")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(phase: &str, restarts: u8, state: &Value, last: &Value) -> Value {
        let id = state.pointer("/running/containerID").cloned();
        json!({ "status": { "phase": phase, "containerStatuses": [{
            "name": "a", "restartCount": restarts, "state": state, "lastState": last,
            "containerID": id,
        }] } })
    }

    #[test]
    fn only_backward_transitions_are_reported() {
        let none = json!({});
        let running = |id| json!({ "running": { "containerID": id } });
        let ended = |id| json!({ "terminated": { "exitCode": 1, "containerID": id } });
        let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
        let start = pod("Running", 1, &running("x"), &none);
        for (old, new, expected) in [
            (&start, pod("Running", 1, &ended("x"), &none), None),
            (&start, pod("Running", 2, &running("y"), &ended("x")), None),
            (&start, pod("Running", 1, &waiting, &ended("x")), None),
            (&start, pod("Succeeded", 1, &ended("x"), &none), None),
            (
                &start,
                pod("Pending", 1, &running("x"), &none),
                Some("phase"),
            ),
            (
                &start,
                pod("Running", 0, &running("x"), &none),
                Some("restartCount"),
            ),
            (
                &start,
                pod("Running", 1, &waiting, &none),
                Some("running to waiting"),
            ),
            (
                &start,
                pod("Running", 1, &running("y"), &none),
                Some("running to running"),
            ),
            (
                &pod("Running", 1, &ended("x"), &none),
                pod("Running", 1, &running("x"), &none),
                Some("terminated to running"),
            ),
            (
                &pod("Failed", 1, &ended("x"), &none),
                pod("Running", 2, &running("y"), &ended("x")),
                Some("from Failed"),
            ),
            (
                &start,
                json!({ "status": { "phase": "Running" } }),
                Some("is gone"),
            ),
        ] {
            let transitions = backward_transitions(old, &new).join("; ");
            match expected {
                None => assert_eq!(transitions, "", "{new}"),
                Some(part) => assert!(transitions.contains(part), "{transitions:?} of {new}"),
            }
        }
    }
}

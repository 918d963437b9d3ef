//! How far a pod has started, by what the API server shows of it; pure.

use std::time::Duration;

use jiff::Timestamp;
use rubelet_api::{pod::Pod, status::Phase, volume::VolumeSource};
use rubelet_node_state::metrics::{ObservedStart, StartProgress};
use rubelet_yaml::read_json;
use serde::Deserialize;

use super::ApiPod;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StatusFields {
    start_time: Option<Timestamp>,
    conditions: Vec<ConditionFields>,
    container_statuses: Vec<ContainerFields>,
    init_container_statuses: Vec<ContainerFields>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ConditionFields {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
    reason: Box<str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainerFields {
    state: StateFields,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StateFields {
    running: Option<RunningFields>,
    terminated: Option<TerminatedFields>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RunningFields {
    started_at: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TerminatedFields {
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

/// How far a pod has started; `None` for a mirror pod, and for one whose status can't be read.
pub(super) fn observed_start(seen: &ApiPod) -> Option<ObservedStart> {
    let pod = seen.pod.as_deref()?;
    let status = read_json::<StatusFields>(seen.status.as_bytes())
        .ok()?
        .value;
    Some(ObservedStart {
        created: pod.created,
        progress: progress(seen.phase, &status),
        is_stateful: is_stateful(pod),
        has_host_network: pod.spec.host_network,
    })
}

fn progress(phase: Option<Phase>, status: &StatusFields) -> StartProgress {
    let is_unschedulable = |condition: &ConditionFields| {
        (&*condition.kind, &*condition.status, &*condition.reason)
            == ("PodScheduled", "False", "Unschedulable")
    };
    if phase.is_some_and(Phase::is_terminal) {
        return StartProgress::Ended;
    }
    if status.conditions.iter().any(is_unschedulable) {
        return StartProgress::WasUnschedulable;
    }
    if status.start_time.is_none() {
        return StartProgress::New;
    }
    let containers = &status.container_statuses;
    let runs = |container: &ContainerFields| {
        let running = container.state.running.as_ref();
        running.is_some_and(|running| running.started_at.is_some())
    };
    if containers.is_empty() || !containers.iter().all(runs) {
        return StartProgress::Starting;
    }
    let init = status.init_container_statuses.iter().filter_map(|one| {
        let end = one.state.terminated.as_ref()?;
        Duration::try_from(end.finished_at?.duration_since(end.started_at?)).ok()
    });
    StartProgress::Started { init: init.sum() }
}

/// Whether a volume of the pod has content that outlives it.
fn is_stateful(pod: &Pod) -> bool {
    pod.spec.volumes.iter().any(|volume| match volume.source {
        VolumeSource::HostPath { .. } | VolumeSource::Image { .. } => true,
        VolumeSource::EmptyDir { .. } | VolumeSource::Files(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(phase: Option<Phase>, status: Value) -> StartProgress {
        progress(phase, &serde_json::from_value(status).unwrap())
    }

    const START: &str = "2026-01-02T03:04:05Z";

    #[test]
    fn a_pod_has_started_once_all_its_containers_run() {
        let running = json!({"state": {"running": {"startedAt": START}}});
        let waiting = json!({"state": {"waiting": {"reason": "ContainerCreating"}}});
        let init = |seconds: u32| {
            let finished = format!("2026-01-02T03:04:{:02}Z", 5 + seconds);
            json!({"state": {"terminated": {"startedAt": START, "finishedAt": finished}}})
        };
        let phase = Some(Phase::Pending);
        assert_eq!(of(phase, json!({})), StartProgress::New);
        for containers in [json!([]), json!([running, waiting])] {
            let status = json!({"startTime": START, "containerStatuses": containers});
            assert_eq!(of(phase, status), StartProgress::Starting);
        }
        let status = json!({
            "startTime": START,
            "containerStatuses": [running],
            "initContainerStatuses": [init(2), running, init(5)],
        });
        assert_eq!(
            of(Some(Phase::Running), status.clone()),
            StartProgress::Started {
                init: Duration::from_secs(7)
            }
        );
        assert_eq!(of(Some(Phase::Failed), status), StartProgress::Ended);
    }

    #[test]
    fn a_pod_that_had_no_node_for_a_time_is_left_out() {
        for (kind, status, reason, expected) in [
            (
                "PodScheduled",
                "False",
                "Unschedulable",
                StartProgress::WasUnschedulable,
            ),
            (
                "PodScheduled",
                "False",
                "SchedulingGated",
                StartProgress::New,
            ),
            ("PodScheduled", "True", "", StartProgress::New),
            ("Ready", "False", "Unschedulable", StartProgress::New),
        ] {
            let condition = json!({"type": kind, "status": status, "reason": reason});
            let status = json!({"conditions": [condition]});
            assert_eq!(of(None, status), expected, "{kind} {reason}");
        }
    }
}

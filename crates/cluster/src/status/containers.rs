//! Statuses of containers: none goes back to an earlier state (kubelet:
//! `checkContainerStateTransition`, which holds back the whole status; here the one container).

use rubelet_api::{
    container::{Container, RestartAction},
    pod::{PodSpec, RestartPolicy},
};
use rubelet_pod_plan::actions::should_restart;
use serde_json::{Value, json};

use super::same::is_empty;

/// A list of container statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// `initContainerStatuses`.
    Init,
    /// `containerStatuses`.
    Regular,
    /// `ephemeralContainerStatuses`.
    Ephemeral,
}

impl List {
    pub(super) const ALL: [Self; 3] = [Self::Init, Self::Regular, Self::Ephemeral];

    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Init => "initContainerStatuses",
            Self::Regular => "containerStatuses",
            Self::Ephemeral => "ephemeralContainerStatuses",
        }
    }
}

/// Our statuses, in our order, without a step back. What ours does not know at all, stays.
pub(super) fn merge(list: List, theirs: &[Value], ours: &[Value], spec: &PodSpec) -> Vec<Value> {
    let by_name = |list: &'_ [Value], wanted: &Value| {
        let mut names = list.iter().map(|one| &one["name"]);
        names.position(|name| name == &wanted["name"])
    };
    let one = |ours: &Value| match by_name(theirs, ours).and_then(|at| theirs.get(at)) {
        Some(old) => forward(list, old, ours, spec),
        None => ours.clone(),
    };
    let unknown = theirs.iter().filter(|old| by_name(ours, old).is_none());
    ours.iter().map(one).chain(unknown.cloned()).collect()
}

/// One container's status. The plan of a pod takes no such steps; this holds if the agent has lost
/// what it knew.
fn forward(list: List, old: &Value, ours: &Value, spec: &PodSpec) -> Value {
    let mut merged = ours.clone();
    let (was, is) = (&old["state"], &ours["state"]);
    let ends = |state: &Value| state["terminated"].is_object();
    if ends(was) && !ends(is) {
        let name = ours["name"].as_str().unwrap_or_default();
        if !may_start_again(list, name, exit_code(&was["terminated"]), spec) {
            return old.clone();
        }
    }
    let another = is_another(&old["containerID"], &ours["containerID"]);
    if is_empty(&ours["lastState"]) {
        let last = if ends(was) && (another || !ends(is)) {
            json!({ "terminated": was["terminated"] })
        } else if was["running"].is_object() && (another || is["running"].is_null() && !ends(is)) {
            json!({ "terminated": lost(&old["containerID"]) })
        } else {
            old["lastState"].clone()
        };
        merged["lastState"] = last;
    }
    let restarts = |status: &Value| status["restartCount"].as_u64().unwrap_or_default();
    let least = restarts(old) + u64::from(another);
    if least > restarts(ours) {
        merged["restartCount"] = least.into();
    }
    merged
}

/// True if both are known and differ.
fn is_another(old: &Value, new: &Value) -> bool {
    !is_empty(old) && !is_empty(new) && old != new
}

/// The `terminated` state of a container whose exit was not observed.
fn lost(id: &Value) -> Value {
    json!({
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was deleted.  The container \
                    used to be Running",
        "startedAt": null,
        "finishedAt": null,
        "containerID": id,
    })
}

fn exit_code(terminated: &Value) -> i32 {
    let code = terminated["exitCode"].as_i64().unwrap_or_default();
    i32::try_from(code).unwrap_or(i32::MAX)
}

fn may_start_again(list: List, name: &str, exit_code: i32, spec: &PodSpec) -> bool {
    let restarts_all = |container: &Container| {
        let mut rules = container.restart_rules.iter();
        rules.any(|rule| rule.action == RestartAction::RestartAllContainers)
    };
    let find = |list: &[Container]| list.iter().find(|one| *one.name == *name).cloned();
    let container = match list {
        List::Ephemeral => return false,
        _ if spec.restart_policy == RestartPolicy::Always => return true,
        _ if spec.all_containers().any(restarts_all) => return true,
        List::Init if spec.sidecar(name).is_some() => return true,
        List::Init => find(&spec.init_containers),
        List::Regular => find(&spec.containers),
    };
    // Of a container that the specification does not name nothing is known.
    container.is_none_or(|one| should_restart(&one, spec.restart_policy, exit_code))
}

//! Restarting containers in place.

use rubelet_api::pod::PodSpec;
use rubelet_base::ContainerId;
use rubelet_node_state::{events::EventType, pod_board::PodEntry};
use rubelet_pod_plan::intents::RestartIntent;
use rubelet_server::ActionError;
use serde_json::{Value, json};

use super::not_kept;
use crate::LocalView;

/// Stores the intent and returns which instances will be replaced.
pub(super) async fn restart(
    view: &LocalView,
    entry: &PodEntry,
    container: Option<&str>,
) -> Result<Value, ActionError> {
    let name = &entry.pod.name.name;
    if entry.deletion.is_some() {
        let message = format!("pod {name:?} is being removed; nothing of it is started again");
        return Err(ActionError::Conflict(message));
    }
    if entry.status.phase.is_terminal() {
        return Err(ActionError::Conflict(format!(
            "pod {name:?} has ended ({}) and is not started again; edit its manifest to run it \
             again",
            entry.status.phase.as_str()
        )));
    }
    let names = match container {
        Some(container) => {
            may_restart(&entry.pod.spec, container, name)?;
            vec![Box::from(container)]
        }
        None => all(&entry.pod.spec),
    };
    let at = view.parts.clock.now();
    let instance = |name: &str| {
        let status = entry.status.container(name);
        status
            .map(|status| &*status.container_id)
            .filter(|id| !id.is_empty())
    };
    let runtime = view.parts.runtime.borrow().name.clone();
    if runtime.is_empty() && names.iter().any(|name| instance(name).is_some()) {
        let message = "the runtime has not answered this agent yet: try again when `rubelet status` \
                       says ready";
        return Err(ActionError::Conflict(message.to_owned()));
    }
    let kept = view.parts.intents.update(&entry.pod.uid, |intents| {
        for name in &names {
            let instance = instance(name).map(ContainerId::from);
            let intent = RestartIntent { instance, at };
            intents.restarts.insert(name.clone(), intent);
        }
    });
    kept.await.map_err(|error| not_kept(&error))?;
    let mut containers = Vec::new();
    for name in &names {
        let message = format!("Restart of container {name} was asked for");
        let recorder = &view.parts.recorder;
        recorder.pod(
            &entry.pod,
            Some(name),
            EventType::Normal,
            "RestartRequested",
            &message,
        );
        let mut shown = json!({ "name": name });
        if let Some(id) = instance(name) {
            shown["containerID"] = format!("{runtime}://{id}").into();
        }
        containers.push(shown);
    }
    Ok(json!({
        "metadata": {
            "namespace": *entry.pod.name.namespace,
            "name": **name,
            "uid": entry.pod.uid.as_str(),
        },
        "askedAt": rubelet_api::wire::seconds(at),
        "containers": containers,
    }))
}

/// The containers that stay up.
fn all(spec: &PodSpec) -> Vec<Box<str>> {
    let sidecars = spec.sidecars().map(|(_, container)| container);
    let all = sidecars.chain(&spec.containers);
    all.map(|container| container.name.clone()).collect()
}

fn may_restart(spec: &PodSpec, container: &str, pod: &str) -> Result<(), ActionError> {
    let names = all(spec);
    if names.iter().any(|name| **name == *container) {
        return Ok(());
    }
    if spec
        .init_containers
        .iter()
        .any(|one| *one.name == *container)
    {
        return Err(ActionError::Conflict(format!(
            "{container:?} is an init container: it runs again only in a new sandbox"
        )));
    }
    let mut ephemeral = spec.ephemeral_containers.iter();
    if ephemeral.any(|one| *one.container.name == *container) {
        return Err(ActionError::Conflict(format!(
            "{container:?} is an ephemeral container: it runs once; add another one"
        )));
    }
    Err(ActionError::BadRequest(format!(
        "pod {pod:?} has no container {container:?}; it has {}",
        names.join(", ")
    )))
}

//! Why a pod is as it is: what the agent knows of it, put together.

mod container;
mod log;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::{
    pod::{Pod, PodSource},
    status::{ContainerState, Phase, PodStatus},
};
use rubelet_cluster::source::UNCONFIRMED;
use rubelet_node_state::pod_board::PodEntry;
use rubelet_pod_plan::{OperatorIntents, history::History, step_failure::StepFailure};
use rubelet_sources::desired::Desired;
use serde_json::Value;
use tokio::sync::watch;

use super::{
    ViewParts,
    pods::{deletion, next_tries},
};
use rubelet_server::explanation::{
    FailureExplanation, ManifestEditsExplanation, PodExplanation, ReadinessGateExplanation,
    ReplacedPodExplanation, TerminationExplanation,
};

/// Copies that take less are no explanation of anything.
const LONG_COPY: Duration = Duration::from_secs(2);

/// Explains a pod as it is now.
pub(super) async fn explain(parts: &ViewParts, entry: &PodEntry) -> PodExplanation {
    let uid = &entry.pod.uid;
    let intents = parts.intents.watch(uid).await.borrow().clone();
    let facts = container::Facts {
        entry,
        intents: &intents,
        probes: &parts.prober.reports(uid),
        next_tries: &next_tries(entry),
    };
    let mut explanation = of(&facts, parts.clock.now());
    if is_unconfirmed(&entry.pod) {
        explanation.unconfirmed.push("the pod itself".to_owned());
    }
    explanation.manifest_edits = manifest_edits(parts, entry);
    explanation
        .unconfirmed
        .extend(parts.objects.unconfirmed(uid));
    let copies = (parts.volume_copies)(uid);
    for container in &mut explanation.containers {
        let copy = copies.get(&container.name).copied();
        container.volume_copy = copy.filter(|copy| copy.seconds >= LONG_COPY.as_secs());
    }
    log::add(&parts.log_path, entry, &mut explanation.containers).await;
    let runtime = Arc::clone(&parts.runtime.borrow().name);
    let containers = explanation.containers.iter_mut();
    for end in containers.flat_map(|container| &mut container.ends) {
        // In the form of the status.
        end.container_id = match &*runtime {
            "" => String::new(),
            runtime => format!("{runtime}://{}", end.container_id),
        };
    }
    explanation
}

fn of(facts: &container::Facts<'_>, now: Timestamp) -> PodExplanation {
    let entry = facts.entry;
    let (pod, status) = (&entry.pod, &entry.status);
    let ready = status.condition("Ready");
    PodExplanation {
        namespace: pod.name.namespace.to_string(),
        name: pod.name.name.to_string(),
        uid: pod.uid.as_str().to_owned(),
        time: now,
        phase: status.phase.as_str().to_owned(),
        since: since(status),
        reason: status.reason.to_string(),
        message: status.message.to_string(),
        ready: ready.is_some_and(|ready| ready.status.is_true()),
        ready_since: ready.map(|ready| ready.last_transition),
        unconfirmed: Vec::new(),
        ending: ending(entry, facts.intents),
        manifest_edits: None,
        sandbox: trouble(&entry.history, |history| history.sandbox.as_ref()),
        teardown: trouble(&entry.history, |history| history.teardown.as_ref()),
        containers: container::all(facts),
        readiness_gates: pod
            .spec
            .readiness_gates
            .iter()
            .map(|gate| readiness_gate(gate, status, facts.intents))
            .collect(),
        plan: entry.why.iter().map(ToString::to_string).collect(),
    }
}

/// Since when the pod is in its phase. No status field says so: it is the time of the transition
/// that led to the phase.
fn since(status: &PodStatus) -> Option<Timestamp> {
    match status.phase {
        Phase::Pending => Some(status.start_time),
        Phase::Running => status
            .condition("Initialized")
            .filter(|condition| condition.status.is_true())
            .map(|condition| condition.last_transition),
        Phase::Succeeded | Phase::Failed => status
            .all_containers()
            .filter_map(|container| match &container.state {
                ContainerState::Terminated(end) => end.finished_at,
                _ => None,
            })
            .max(),
    }
}

/// Whether the pod was started from its last known state, without confirmation by the API server.
fn is_unconfirmed(pod: &Pod) -> bool {
    let shown: Value = serde_json::from_str(&pod.json).unwrap_or_default();
    shown["metadata"]["annotations"][UNCONFIRMED] == "true"
}

/// The effects of edits of the pod's manifest.
fn manifest_edits(parts: &ViewParts, entry: &PodEntry) -> Option<ManifestEditsExplanation> {
    let pod = &entry.pod;
    if pod.source == PodSource::Api {
        return None;
    }
    let is_wanted = |source: &watch::Receiver<Arc<Desired>>| {
        let desired = source.borrow();
        let wanted = desired.pods.get(&pod.name);
        wanted.is_some_and(|wanted| wanted.source != PodSource::Api)
    };
    let replaced = entry.history.replaced.as_ref();
    Some(ManifestEditsExplanation {
        mode: parts.manifest_edits.as_str().to_owned(),
        being_replaced: entry.deletion.is_some() && parts.desired.iter().any(is_wanted),
        replaced: replaced.map(|replaced| ReplacedPodExplanation {
            uid: replaced.uid.to_string(),
            at: replaced.at,
        }),
    })
}

fn ending(entry: &PodEntry, intents: &OperatorIntents) -> Option<TerminationExplanation> {
    let deletion = deletion(entry, intents)?;
    Some(TerminationExplanation {
        since: deletion.since,
        grace_seconds: deletion.grace.as_secs(),
        kill_at: deletion.kill_at,
    })
}

fn trouble(
    history: &History,
    of: impl FnOnce(&History) -> Option<&StepFailure>,
) -> Option<FailureExplanation> {
    of(history).map(failure)
}

fn failure(failure: &StepFailure) -> FailureExplanation {
    FailureExplanation {
        reason: failure.reason.to_string(),
        message: failure.message.to_string(),
        at: failure.at,
        next_try: failure.retry_at(),
    }
}

fn readiness_gate(
    gate: &str,
    status: &PodStatus,
    intents: &OperatorIntents,
) -> ReadinessGateExplanation {
    let mut asked = intents.conditions.iter();
    let asked = asked.find(|condition| *condition.kind == *gate);
    let found = match (asked, status.condition(gate)) {
        (Some(asked), _) => Some((asked.status, &asked.reason, &asked.message)),
        (None, Some(shown)) => Some((shown.status, &shown.reason, &shown.message)),
        (None, None) => None,
    };
    ReadinessGateExplanation {
        condition: gate.to_owned(),
        status: found.map(|(status, ..)| status.as_str().to_owned()),
        reason: found.map_or_else(String::new, |(_, reason, _)| reason.to_string()),
        message: found.map_or_else(String::new, |(.., message)| message.to_string()),
    }
}

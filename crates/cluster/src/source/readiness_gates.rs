//! Readiness gates: conditions that others set at the API server and that a pod waits for.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rubelet_api::status::ConditionStatus;
use rubelet_base::{ErrorChain, PodUid};
use rubelet_node_state::intents::IntentBoard;
use rubelet_pod_plan::intents::ExternalCondition;
use rubelet_yaml::read_json;
use serde::Deserialize;
use tracing::warn;

use super::ApiPod;

/// The last reported conditions of the pods that have readiness gates.
#[derive(Debug, Default)]
pub(super) struct ReadinessGates {
    reported: BTreeMap<PodUid, Vec<ExternalCondition>>,
}

impl ReadinessGates {
    /// The changed conditions of a pod that its gates name.
    pub(super) fn news(&mut self, pod: &ApiPod) -> Option<(PodUid, Vec<ExternalCondition>)> {
        let spec = &pod.pod.as_ref()?.spec;
        if spec.readiness_gates.is_empty() || pod.deletion.is_some() {
            return None;
        }
        let mut conditions = conditions(&pod.status);
        conditions.retain(|one| spec.readiness_gates.contains(&one.kind));
        if self.reported.get(&pod.uid) == Some(&conditions) {
            return None;
        }
        self.reported.insert(pod.uid.clone(), conditions.clone());
        Some((pod.uid.clone(), conditions))
    }

    pub(super) fn forget(&mut self, uid: &PodUid) {
        self.reported.remove(uid);
    }
}

/// Stores the conditions for the pod's task.
pub(super) async fn store_conditions(
    intents: &IntentBoard,
    uid: &PodUid,
    conditions: Vec<ExternalCondition>,
) {
    let stored = intents
        .update(uid, |intents| intents.conditions = conditions)
        .await;
    if let Err(error) = stored {
        warn!(%uid, error = %ErrorChain(&error), "Cannot store the conditions of readiness gates");
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Condition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
    reason: Box<str>,
    message: Box<str>,
    last_transition_time: Option<Timestamp>,
}

fn conditions(status: &str) -> Vec<ExternalCondition> {
    let status = read_json::<Status>(status.as_bytes());
    let status = status.map(|read| read.value).unwrap_or_default();
    let conditions = status.conditions.into_iter();
    conditions
        .map(|one| ExternalCondition {
            status: match &*one.status {
                "True" => ConditionStatus::True,
                "False" => ConditionStatus::False,
                _ => ConditionStatus::Unknown,
            },
            kind: one.kind,
            reason: one.reason,
            message: one.message,
            last_transition: one.last_transition_time.unwrap_or_default(),
        })
        .collect()
}

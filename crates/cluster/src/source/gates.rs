//! Readiness gates: conditions that others set at the API server and that a pod waits for.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rubelet_api::status::ConditionStatus;
use rubelet_base::{ErrorChain, PodUid};
use rubelet_kubelet::intents::IntentBoard;
use rubelet_pod_plan::intents::ForeignCondition;
use serde::Deserialize;
use tracing::warn;

use super::ApiPod;

/// What was told of the pods that have such gates.
#[derive(Debug, Default)]
pub(super) struct Gates {
    told: BTreeMap<PodUid, Vec<ForeignCondition>>,
}

impl Gates {
    /// What is news of a pod: the conditions that its gates name.
    pub(super) fn news(&mut self, pod: &ApiPod) -> Option<(PodUid, Vec<ForeignCondition>)> {
        let spec = &pod.pod.as_ref()?.spec;
        if spec.readiness_gates.is_empty() || pod.deletion.is_some() {
            return None;
        }
        let mut conditions = conditions(&pod.status);
        conditions.retain(|one| spec.readiness_gates.contains(&one.kind));
        if self.told.get(&pod.uid) == Some(&conditions) {
            return None;
        }
        self.told.insert(pod.uid.clone(), conditions.clone());
        Some((pod.uid.clone(), conditions))
    }

    pub(super) fn forget(&mut self, uid: &PodUid) {
        self.told.remove(uid);
    }
}

/// Tells the pod's task.
pub(super) async fn tell(intents: &IntentBoard, uid: &PodUid, conditions: Vec<ForeignCondition>) {
    let told = intents
        .update(uid, |intents| intents.conditions = conditions)
        .await;
    if let Err(error) = told {
        warn!(%uid, error = %ErrorChain(&error), "Conditions of readiness gates can't be kept");
    }
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: Box<str>,
    status: Box<str>,
    #[serde(default)]
    reason: Option<Box<str>>,
    #[serde(default)]
    message: Option<Box<str>>,
    #[serde(default)]
    last_transition_time: Option<Timestamp>,
}

fn conditions(status: &str) -> Vec<ForeignCondition> {
    let status: Status = serde_json::from_str(status).unwrap_or_default();
    let conditions = status.conditions.into_iter();
    conditions
        .map(|one| ForeignCondition {
            status: match &*one.status {
                "True" => ConditionStatus::True,
                "False" => ConditionStatus::False,
                _ => ConditionStatus::Unknown,
            },
            kind: one.kind,
            reason: one.reason.unwrap_or_default(),
            message: one.message.unwrap_or_default(),
            last_transition: one.last_transition_time.unwrap_or_default(),
        })
        .collect()
}

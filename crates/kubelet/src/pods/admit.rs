//! Taking in a pod, or refusing it for good.

use std::sync::Arc;

use rubelet_api::{
    pod::Pod,
    status::{ConditionStatus, Phase, PodStatus},
};
use rubelet_base::{ErrorChain, PodUid};
use rubelet_node_plan::admission::{PREEMPTED, PREEMPTED_CONDITION, PREEMPTING};
use rubelet_pod_plan::{EarlyEnd, ForeignCondition};
use tracing::{info, warn};

use super::table::PodTable;
use crate::{
    cluster_view::Rejection, events::EventType, pleg::RuntimePod, pod_task::PodEntry,
    records::PodRecord,
};

/// Type of the condition that says why a pod ends early.
const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// Its reason.
const TERMINATION_BY_KUBELET: &str = "TerminationByKubelet";

/// Why a pod does not start.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It fails for good.
    Rejected(Rejection),
    /// It waits for pods that are ending, and for these, which have to be told.
    Waits(Vec<PodUid>),
}

/// What is known of a pod from before.
pub(super) struct Memory {
    /// What its task goes on from.
    pub(super) record: Option<PodRecord>,
    /// It was taken in at an earlier time.
    taken_in: bool,
}

impl PodTable {
    /// What this node remembers of a pod; what the cluster has of it stands in for a record that
    /// was lost.
    pub(super) async fn remember(&self, pod: &Pod) -> Memory {
        let context = self.context();
        if let Some(record) = context.records.load(&pod.uid).await {
            return Memory {
                record: Some(record),
                taken_in: true,
            };
        }
        let published = context.cluster.published(&pod.uid);
        Memory {
            taken_in: published
                .as_ref()
                .is_some_and(|status| status.phase != Phase::Pending),
            record: published.map(|status| PodRecord::of_status(&pod.name, status)),
        }
    }

    /// Whether a pod without a task may have one. What was taken in once is not judged again: not
    /// what the runtime holds, not what has a record, not what the cluster has seen running.
    ///
    /// # Errors
    /// Why not, or why not yet.
    pub(super) fn admit(
        &self,
        pod: &Arc<Pod>,
        memory: &Memory,
        runtime: &[RuntimePod],
    ) -> Result<(), Refusal> {
        if memory.taken_in || runtime.iter().any(|found| found.uid == pod.uid) {
            return Ok(());
        }
        let context = self.context();
        let active = |pod: &Arc<Pod>| {
            let entry = context.board.get(&pod.uid);
            entry.is_none_or(|entry| !entry.status.phase.is_terminal())
        };
        let mut others: Vec<Arc<Pod>> = self.working_on().filter(active).collect();
        // Room that is made for one pod is taken by no other.
        others.extend(self.waiting_for_room(&pod.uid));
        let Err(rejection) = context.cluster.admit(pod, &others) else {
            return Ok(());
        };
        let staying: Vec<Arc<Pod>> = others
            .iter()
            .filter(|other| !self.is_leaving(&other.uid))
            .cloned()
            .collect();
        if staying.len() < others.len() && context.cluster.admit(pod, &staying).is_ok() {
            return Err(Refusal::Waits(Vec::new()));
        }
        match context.cluster.preempt(pod, &staying) {
            Some(victims) => Err(Refusal::Waits(victims)),
            None => Err(Refusal::Rejected(rejection)),
        }
    }

    /// Whether a pod was evicted and has not ended.
    fn is_leaving(&self, uid: &PodUid) -> bool {
        let intents = self.context().intents.current(uid);
        intents.is_some_and(|intents| intents.eviction.is_some())
    }

    /// Ends pods so that a critical one may start; it is judged again when they have ended (kubelet:
    /// `evictPodsToFreeRequests`).
    pub(super) async fn preempt(&mut self, pod: &Arc<Pod>, victims: &[PodUid]) {
        if !victims.is_empty() {
            self.wait_for_room(pod);
        }
        let now = self.context().clock.now();
        for victim in self.pods_of(victims) {
            info!(pod = %victim.name, uid = %victim.uid, wants = %pod.name, "Pod is preempted for a critical pod");
            let context = self.context();
            let recorder = &context.recorder;
            recorder.pod(&victim, None, EventType::Warning, PREEMPTING, PREEMPTED);
            let asked = context.intents.update(&victim.uid, |intents| {
                intents.eviction = Some(EarlyEnd {
                    reason: PREEMPTING.into(),
                    message: PREEMPTED.into(),
                });
                intents
                    .conditions
                    .retain(|one| *one.kind != *DISRUPTION_TARGET);
                intents.conditions.push(ForeignCondition {
                    kind: DISRUPTION_TARGET.into(),
                    status: ConditionStatus::True,
                    reason: TERMINATION_BY_KUBELET.into(),
                    message: PREEMPTED_CONDITION.into(),
                    last_transition: now,
                });
            });
            if let Err(error) = asked.await {
                warn!(pod = %victim.name, error = %ErrorChain(&error), "Pod can't be preempted; it is tried again");
            }
        }
    }

    /// Says why a pod does not run here, for as long as its source names it (kubelet: `rejectPod`).
    pub(super) fn reject(&mut self, pod: &Arc<Pod>, rejection: &Rejection) {
        let Rejection { reason, message } = rejection;
        info!(pod = %pod.name, uid = %pod.uid, %reason, %message, "Pod is rejected");
        let context = self.context();
        context
            .recorder
            .pod(pod, None, EventType::Warning, reason, message);
        let status = PodStatus {
            phase: Phase::Failed,
            reason: reason.clone(),
            message: format!("Pod was rejected: {message}").into(),
            start_time: context.clock.now(),
            pod_ips: Vec::new(),
            conditions: Vec::new(),
            observed_generation: pod.generation,
            init_containers: Vec::new(),
            containers: Vec::new(),
            ephemeral_containers: Vec::new(),
        };
        let entry = PodEntry {
            pod: Arc::clone(pod),
            status,
            deletion: None,
            why: Vec::new(),
            history: Arc::default(),
            wake_at: None,
            finished: false,
        };
        context.board.set(pod.uid.clone(), entry);
        self.finished(&pod.uid);
    }
}

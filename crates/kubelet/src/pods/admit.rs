//! Admits a pod, or rejects it permanently.

use std::sync::Arc;

use rubelet_api::{
    pod::Pod,
    status::{Phase, PodStatus},
};
use rubelet_base::{ErrorChain, PodUid};
use rubelet_node_plan::{
    admission::{PREEMPTED, PREEMPTED_CONDITION, PREEMPTING, Rejection},
    critical::is_critical,
    node_shutdown,
};
use rubelet_node_state::{cluster_view::Preemption, events::EventType, pod_board::PodEntry};
use rubelet_pleg::RuntimePod;
use rubelet_pod_plan::{Eviction, ExternalCondition};
use tracing::{info, warn};

use super::{
    admission::{AdmitError, RestoredPod},
    decide::TableAction,
    table::PodTable,
};
use crate::records::PodRecord;

/// True if this node has run the pod before: it has a record, or the runtime has it, or its status
/// in the API server is past `Pending`.
fn is_known(pod: &Pod, restored: &RestoredPod, runtime: &[RuntimePod]) -> bool {
    restored.was_admitted || runtime.iter().any(|found| found.uid == pod.uid)
}

impl PodTable {
    /// Loads the record of a pod; the status in the API server stands in for a lost record.
    pub(super) async fn restore(&self, pod: &Pod) -> RestoredPod {
        let context = self.context();
        if let Some(record) = context.records.load(&pod.uid).await {
            return RestoredPod {
                record: Some(record),
                was_admitted: true,
            };
        }
        let published = context.cluster.published(&pod.uid);
        RestoredPod {
            was_admitted: published
                .as_ref()
                .is_some_and(|status| status.phase != Phase::Pending),
            record: published.map(|status| PodRecord::of_status(&pod.name, status)),
        }
    }

    /// Puts pods that this node has run before first, as new pods are admitted beside them: after a
    /// start of the agent no pod has a task.
    pub(super) async fn known_first(
        &self,
        actions: Vec<TableAction>,
        runtime: &[RuntimePod],
    ) -> Vec<TableAction> {
        let (mut known, mut new) = (Vec::new(), Vec::new());
        for action in actions {
            let is_new = match &action {
                TableAction::Spawn(pod) => !is_known(pod, &self.restore(pod).await, runtime),
                _ => false,
            };
            if is_new { &mut new } else { &mut known }.push(action);
        }
        known.append(&mut new);
        known
    }

    /// Keeps the resources that a critical pod waits for.
    pub(super) fn wait(&mut self, pod: &Arc<Pod>) {
        if is_critical(pod) {
            self.add_waiting(pod);
        }
    }

    /// Decides whether a pod without a task gets one. A pod that ran on this node before is not
    /// checked again.
    ///
    /// # Errors
    /// The pod is rejected, or has to wait.
    pub(super) fn admit(
        &self,
        pod: &Arc<Pod>,
        restored: &RestoredPod,
        runtime: &[RuntimePod],
    ) -> Result<(), AdmitError> {
        if is_known(pod, restored, runtime) {
            return Ok(());
        }
        // The resource requests of unlisted pods are unknown.
        if self.holds_unlisted(runtime) {
            return Err(AdmitError::WaitingForPods);
        }
        let context = self.context();
        let active = |pod: &Arc<Pod>| {
            let entry = context.board.get(&pod.uid);
            entry.is_none_or(|entry| !entry.status.phase.is_terminal())
        };
        let mut others: Vec<Arc<Pod>> = self.running_pods().filter(active).collect();
        // Resources that are being freed for one pod are not given to another.
        others.extend(self.others_waiting(&pod.uid));
        let admitted = context.cluster.admit(pod, &others);
        // Nothing is freed for a pod that would be ended at once.
        if self.shuts_down() {
            let rejection = admitted.err().unwrap_or_else(node_shutdown::rejection);
            return Err(AdmitError::Rejected(rejection));
        }
        let Err(rejection) = admitted else {
            return Ok(());
        };
        let staying: Vec<Arc<Pod>> = others
            .iter()
            .filter(|other| !self.is_leaving(&other.uid))
            .cloned()
            .collect();
        // It fits once the evicted pods are gone: it waits for them instead of being rejected
        // permanently.
        if staying.len() < others.len() && context.cluster.admit(pod, &staying).is_ok() {
            return Err(AdmitError::WaitingForPods);
        }
        match context.cluster.preempt(pod, &staying) {
            Some(preemption) => Err(AdmitError::NeedsPreemption(preemption)),
            None => Err(AdmitError::Rejected(rejection)),
        }
    }

    /// True if the pod was evicted and has not terminated.
    fn is_leaving(&self, uid: &PodUid) -> bool {
        let intents = self.context().intents.current(uid);
        intents.is_some_and(|intents| intents.eviction.is_some())
    }

    /// Evicts pods for a critical one, whose admission is repeated when they have terminated
    /// (kubelet: `evictPodsToFreeRequests`).
    pub(super) async fn preempt(&mut self, pod: &Arc<Pod>, preemption: &Preemption) {
        self.add_waiting(pod);
        let now = self.context().clock.now();
        for victim in self.pods_of(&preemption.victims) {
            info!(pod = %victim.name, uid = %victim.uid, preemptor = %pod.name, "Preempting pod for a critical pod");
            let context = self.context();
            let recorder = &context.recorder;
            recorder.pod(&victim, None, EventType::Warning, PREEMPTING, PREEMPTED);
            let eviction = Eviction {
                reason: PREEMPTING.into(),
                message: PREEMPTED.into(),
                grace: None,
            };
            let disruption = ExternalCondition::terminated_by_kubelet(PREEMPTED_CONDITION, now);
            let asked = context
                .intents
                .update(&victim.uid, |intents| intents.evict(eviction, disruption));
            match asked.await {
                Ok(()) => context.metrics.pods.preempted(&preemption.resource),
                Err(error) => {
                    warn!(pod = %victim.name, error = %ErrorChain(&error), "Failed to preempt pod, retrying");
                }
            }
        }
    }

    /// Publishes the rejection of a pod, for as long as its source names it (kubelet: `rejectPod`).
    pub(super) fn reject(&mut self, pod: &Arc<Pod>, rejection: &Rejection) {
        let Rejection { reason, message } = rejection;
        info!(pod = %pod.name, uid = %pod.uid, %reason, %message, "Pod rejected");
        let context = self.context();
        context.metrics.pods.rejected(reason);
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

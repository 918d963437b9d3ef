//! Taking in a pod, or refusing it for good.

use std::sync::Arc;

use rubelet_api::{
    pod::Pod,
    status::{Phase, PodStatus},
};
use tracing::info;

use super::table::PodTable;
use crate::{
    cluster_view::Rejection, events::EventType, pleg::RuntimePod, pod_task::PodEntry,
    records::PodRecord,
};

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
    pub(super) fn admit(
        &self,
        pod: &Arc<Pod>,
        memory: &Memory,
        runtime: &[RuntimePod],
    ) -> Result<(), Rejection> {
        if memory.taken_in || runtime.iter().any(|found| found.uid == pod.uid) {
            return Ok(());
        }
        let context = self.context();
        let active = |pod: &Arc<Pod>| {
            let entry = context.board.get(&pod.uid);
            entry.is_none_or(|entry| !entry.status.phase.is_terminal())
        };
        let others: Vec<Arc<Pod>> = self.working_on().filter(active).collect();
        context.cluster.admit(pod, &others)
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

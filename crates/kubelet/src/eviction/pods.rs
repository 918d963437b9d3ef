//! The pods that may be evicted, and the eviction of one.

use std::{sync::Arc, time::Duration};

use rubelet_api::pod::Pod;
use rubelet_base::PodUid;
use rubelet_cri::v1;
use rubelet_node_plan::eviction::{EVICTED, PodEviction};
use rubelet_node_state::events::{EventType, Subject};
use rubelet_pod_plan::{Eviction, ExternalCondition, cri_config::labels::POD_UID};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::EvictionTask;
use crate::slow_end;

/// Longest wait for the end of a pod before anything else is freed (kubelet: `podCleanupTimeout`).
const CLEANUP: Duration = Duration::from_secs(30);
/// Time after the removal of a pod's volumes until the node is measured again. The kernel frees memory that the mount
/// namespace of a container held, such as volumes in memory, some time after its last process has ended. The kubelet
/// looks once in this time whether an evicted pod is gone.
const AFTER_RELEASE: Duration = Duration::from_secs(1);
/// Time between two looks for containers that are being removed.
const RECHECK: Duration = Duration::from_millis(500);

/// A pod that is not done.
pub(super) struct ActivePod {
    pub(super) pod: Arc<Pod>,
    /// True if it is being terminated.
    pub(super) is_leaving: bool,
}

impl EvictionTask {
    /// The pods that have not ended. One that did not end in time is left out: others must not wait
    /// for what may never be freed.
    pub(super) fn active_pods(&mut self) -> Vec<ActivePod> {
        let entries = self.context.board.list();
        let active: Vec<_> = entries
            .iter()
            .filter(|(_, _, entry)| !entry.has_ended())
            .collect();
        self.stuck
            .retain(|uid| active.iter().any(|(active, ..)| active == uid));
        active
            .into_iter()
            .filter(|(uid, ..)| !self.stuck.contains(uid))
            .map(|(uid, _, entry)| {
                let intents = self.context.intents.current(uid);
                let is_evicted = intents.is_some_and(|intents| intents.eviction.is_some());
                ActivePod {
                    pod: Arc::clone(&entry.pod),
                    is_leaving: entry.deletion.is_some() || is_evicted,
                }
            })
            .collect()
    }

    /// Has the pod's task terminate it, with phase `Failed` and reason `Evicted`.
    pub(super) async fn evict(&self, pod: &Pod, eviction: &PodEviction) {
        let PodEviction { message, grace, .. } = eviction;
        info!(pod = %pod.name, uid = %pod.uid, %message, "Evicting pod");
        let context = &self.context;
        context.recorder.record_annotated(
            Subject::of(pod, None),
            EventType::Warning,
            (EVICTED, message),
            eviction.annotations.clone(),
        );
        let disruption = ExternalCondition::terminated_by_kubelet(message, context.clock.now());
        let eviction = Eviction {
            reason: EVICTED.into(),
            message: message.as_str().into(),
            grace: Some(*grace),
        };
        let noted = context
            .intents
            .update_without_space(&pod.uid, |intents| intents.evict(eviction, disruption));
        noted.await;
    }

    /// Has the tasks of pods that have ended remove their containers. Returns when the runtime has
    /// none of them any more, or after some time.
    pub(super) async fn discard_dead_containers(&self) {
        let context = &self.context;
        let ended: Vec<PodUid> = context
            .board
            .list()
            .iter()
            .filter(|(_, _, entry)| !entry.finished && entry.status.phase.is_terminal())
            .map(|(uid, ..)| uid.clone())
            .collect();
        for uid in &ended {
            let asked = context
                .intents
                .update_without_space(uid, |intents| intents.discard_containers = true);
            asked.await;
        }
        // The tasks remove them side by side. Their observations are theirs: this asks the runtime.
        let gone = async {
            while self.has_containers(&ended).await {
                sleep(RECHECK).await;
            }
        };
        if timeout(CLEANUP, gone).await.is_err() {
            debug!("Removing containers of terminated pods takes too long");
        }
    }

    /// True if the runtime has containers of these pods.
    async fn has_containers(&self, pods: &[PodUid]) -> bool {
        if pods.is_empty() {
            return false;
        }
        let request = v1::ListContainersRequest::default();
        let listed = self.context.runtime.list_containers(request).await;
        listed.is_ok_and(|listed| {
            listed.containers.iter().any(|container| {
                let uid = container.labels.get(POD_UID);
                uid.is_some_and(|uid| pods.iter().any(|pod| pod.as_str() == uid))
            })
        })
    }

    /// Shortens the grace period of a pod that is being deleted.
    pub(super) async fn hasten(&self, uid: &PodUid, grace: Duration) {
        let context = &self.context;
        let now = context.clock.now();
        let is_deleted = context
            .board
            .get(uid)
            .is_some_and(|entry| entry.deletion.is_some());
        if !is_deleted {
            return;
        }
        let asked = context
            .intents
            .update_without_space(uid, |intents| intents.shorten_grace(grace, now));
        asked.await;
    }

    /// Waits until the pod has ended. A pod that takes too long is reported, and not waited for
    /// again.
    pub(super) async fn until_ended(&mut self, uid: &PodUid, grace: Duration) {
        let board = Arc::clone(&self.context.board);
        let mut versions = board.versions();
        let began = Instant::now();
        let ended = async {
            while board.get(uid).is_some_and(|entry| !entry.has_ended()) {
                if versions.changed().await.is_err() {
                    return;
                }
            }
        };
        let limit = CLEANUP.max(grace.mul_f32(1.5));
        let report_at = began + slow_end::report_after(grace);
        let mut ended = std::pin::pin!(timeout(limit, ended));
        // Cancel safety: `ended` is pinned and continues below.
        let in_time = tokio::select! {
            biased;
            ended = &mut ended => ended,
            () = sleep_until(report_at) => {
                self.report_slow_end(uid);
                ended.await
            }
        };
        if in_time.is_err() {
            warn!(%uid, "A pod did not end in time after its eviction");
            self.stuck.insert(uid.clone());
            return;
        }
        self.until_released(uid).await;
    }

    /// Waits until what a pod that has ended held is free, such as its volumes in memory: before that it
    /// would be another pod's turn for nothing.
    async fn until_released(&self, uid: &PodUid) {
        let board = &self.context.board;
        let mut versions = board.versions();
        let released = async {
            while board.get(uid).is_some_and(|entry| !entry.has_released()) {
                if versions.changed().await.is_err() {
                    return;
                }
            }
        };
        if timeout(CLEANUP, released).await.is_err() {
            debug!(%uid, "Not everything of an evicted pod is free");
        }
        sleep(AFTER_RELEASE).await;
    }

    fn report_slow_end(&self, uid: &PodUid) {
        if let Some(entry) = self.context.board.get(uid) {
            slow_end::report(&self.context.recorder, &entry.pod);
        }
    }
}

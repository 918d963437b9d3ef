//! The end of all pods of the node.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::join_all;
use rubelet_api::pod::Pod;
use rubelet_node_plan::node_shutdown::{EndingGroup, TERMINATED, TERMINATED_MESSAGE};
use rubelet_pod_plan::{Eviction, ExternalCondition};
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{info, warn};

use super::NodeShutdown;
use crate::slow_end;

/// Longest time in which the pods of a group without any time are told.
const SHORTEST: Duration = Duration::from_secs(1);

impl NodeShutdown {
    /// Ends all pods, each group after those of lower priority have ended or their time has.
    pub(super) async fn end_pods(&self) {
        let started = self.context.clock.now();
        self.note_start(started).await;
        let entries = self.context.board.list();
        let active = entries.iter().filter(|(_, _, entry)| !entry.has_ended());
        let pods = active.map(|(_, _, entry)| Arc::clone(&entry.pod));
        for ending in self.settings.policy.plan(pods) {
            self.end_group(&ending).await;
        }
        self.note_end(started).await;
    }

    async fn end_group(&self, ending: &EndingGroup) {
        let (priority, period) = (ending.group.priority, ending.group.period);
        let count = ending.pods.len();
        info!(
            priority,
            ?period,
            count,
            "Ending pods for the shutdown of the node"
        );
        let until = Instant::now() + period;
        let asked = ending
            .pods
            .iter()
            .map(|pod| self.terminate(pod, ending.grace(pod)));
        // Also without any time: they are told, and not waited for. A disk that hangs holds up no
        // group for longer than its time.
        let _ = timeout(period.max(SHORTEST), join_all(asked)).await;
        let ended = ending
            .pods
            .iter()
            .map(|pod| self.until_ended(pod, ending.grace(pod)));
        if timeout_at(until, join_all(ended)).await.is_err() {
            let board = &self.context.board;
            let still = ending.pods.iter().filter(|pod| {
                let entry = board.get(&pod.uid);
                entry.is_some_and(|entry| !entry.has_ended())
            });
            let names: Vec<String> = still.map(|pod| pod.name.to_string()).collect();
            warn!(
                priority,
                ?period,
                pods = names.join(", "),
                "Pods have not ended within their time"
            );
        }
    }

    /// Has the pod's task terminate it, with phase `Failed` and reason `Terminated`. A pod that is
    /// already being deleted only gets less time.
    async fn terminate(&self, pod: &Pod, grace: Duration) {
        let context = &self.context;
        let now = context.clock.now();
        let entry = context.board.get(&pod.uid);
        let is_deleted = entry.is_some_and(|entry| entry.deletion.is_some());
        let asked = context.intents.update_without_space(&pod.uid, |intents| {
            if is_deleted {
                intents.shorten_grace(grace, now);
                return;
            }
            // The first reason stays.
            if intents.eviction.is_none() {
                let eviction = Eviction {
                    reason: TERMINATED.into(),
                    message: TERMINATED_MESSAGE.into(),
                    grace: Some(grace),
                };
                let disruption = ExternalCondition::terminated_by_kubelet(TERMINATED_MESSAGE, now);
                intents.evict(eviction, disruption);
            }
        });
        asked.await;
    }

    /// Waits until the pod has ended and its volumes are removed: pods of a higher priority may be
    /// needed for that.
    async fn until_ended(&self, pod: &Pod, grace: Duration) {
        let (uid, board) = (&pod.uid, &self.context.board);
        let mut versions = board.versions();
        let released = async {
            while board.get(uid).is_some_and(|entry| !entry.has_released()) {
                if versions.changed().await.is_err() {
                    return;
                }
            }
        };
        let mut released = pin!(released);
        let report_after = slow_end::report_after(grace);
        if timeout(report_after, released.as_mut()).await.is_err() {
            self.report_slow_end(pod);
            released.await;
        }
    }

    fn report_slow_end(&self, pod: &Pod) {
        if self
            .context
            .board
            .get(&pod.uid)
            .is_some_and(|entry| entry.has_ended())
        {
            // Only its volumes are left.
            return;
        }
        slow_end::report(&self.context.recorder, pod);
    }
}

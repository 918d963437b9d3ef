//! Pods that a shutdown of the node has ended, and that nobody else would replace.

use rubelet_api::{pod::PodSource, status::Phase};
use rubelet_node_plan::node_shutdown::TERMINATED;
use rubelet_node_state::shutdown_state::ShutdownState;
use tracing::info;

use super::PodTask;

impl PodTask {
    /// Has a pod of a manifest run again that a shutdown of the node has ended, once the machine runs
    /// again or the shutdown was cancelled. The kubelet starts it again after the next boot.
    pub(super) async fn resume_after_shutdown(&mut self) {
        let is_running = *self.shutdown.borrow_and_update() == ShutdownState::Running;
        if !is_running || self.pod.source == PodSource::Api {
            return;
        }
        let eviction = self.intents.borrow().eviction.clone();
        if eviction.is_none_or(|eviction| &*eviction.reason != TERMINATED) {
            return;
        }
        info!(pod = %self.pod.name, uid = %self.pod.uid, "Starting pod again after the shutdown of the node");
        if let Some(status) = &mut self.status
            && status.phase.is_terminal()
        {
            status.phase = Phase::Pending;
            status.reason = "".into();
            status.message = "".into();
        }
        // First: if the agent is killed in between, the intent shows that the pod has to be started.
        self.save_record();
        self.context.records.flush().await;
        let revoked = self
            .context
            .intents
            .update_without_space(&self.pod.uid, |intents| {
                intents.revoke_eviction(TERMINATED);
            });
        revoked.await;
    }
}

//! The grace period of the pod, which may become shorter while its containers terminate.

use std::{sync::Arc, time::Duration};

use rubelet_pod_plan::OperatorIntents;
use tokio::sync::watch;

use crate::pod_task::{PodControl, PodTask};

/// Follows the grace period in the control and the intents of the pod's task.
pub(super) struct PodGrace {
    control: watch::Receiver<PodControl>,
    intents: watch::Receiver<Arc<OperatorIntents>>,
    removing: bool,
}

impl PodGrace {
    pub(super) fn of(task: &PodTask) -> Self {
        Self {
            control: task.control.clone(),
            intents: task.intents.clone(),
            removing: task.removing,
        }
    }

    /// The pod's grace period now; `None` while it is not being terminated.
    pub(super) fn now(&mut self) -> Option<Duration> {
        let asked = self.intents.borrow_and_update().grace;
        match &*self.control.borrow_and_update() {
            PodControl::Remove { grace, .. } => Some(asked.unwrap_or(*grace).min(*grace)),
            PodControl::Run(_) => asked.filter(|_| self.removing),
        }
    }

    /// Resolves when the grace period may have changed; never if the agent stops.
    pub(super) async fn changed(&mut self) {
        // Cancel safety: watch receivers keep unseen values.
        tokio::select! {
            biased;
            changed = self.control.changed() => {
                if changed.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            Ok(()) = self.intents.changed() => {}
        }
    }
}

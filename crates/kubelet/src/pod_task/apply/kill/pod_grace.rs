//! The grace period of the pod, which may become shorter while its containers terminate.

use std::{sync::Arc, time::Duration};

use rubelet_pod_plan::Intents;
use tokio::sync::watch;

use crate::pod_task::{Control, PodTask};

/// Follows the control of the pod's task.
pub(super) struct PodGrace {
    control: watch::Receiver<Control>,
    intents: watch::Receiver<Arc<Intents>>,
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

    /// The pod's grace now; `None` while it is not to end.
    pub(super) fn now(&mut self) -> Option<Duration> {
        let asked = self.intents.borrow_and_update().grace;
        match &*self.control.borrow_and_update() {
            Control::Remove { grace, .. } => Some(asked.unwrap_or(*grace).min(*grace)),
            Control::Run(_) => asked.filter(|_| self.removing),
        }
    }

    /// Ends when that may have changed; never if the agent stops.
    pub(super) async fn changed(&mut self) {
        // Cancel safety: watch receivers keep what was not seen.
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

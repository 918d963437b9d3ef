//! Tells operators of pods whose inspections hang: it is the pod's trouble, and not the node's.

use std::sync::Arc;

use crate::{
    events::{EventType, Recorder},
    pleg::{PlegHandle, Quarantine},
    pod_task::PodBoard,
};

/// Reason of the event of a pod that the runtime tells nothing of.
const HANGS: &str = "RuntimeHangs";
/// Reason of the event at the end of that.
const ANSWERS: &str = "RuntimeAnswers";

/// Records an event when a pod comes into quarantine and when it leaves, for ever.
pub(crate) async fn warn(pleg: PlegHandle, board: Arc<PodBoard>, recorder: Recorder) {
    let mut pods = pleg.quarantine();
    let mut before = Quarantine::default();
    loop {
        let now = pods.borrow_and_update().clone();
        let entered = now.iter().filter(|(uid, _)| !before.contains_key(*uid));
        for (uid, error) in entered {
            if let Some(entry) = board.get(uid) {
                let message = format!(
                    "the runtime does not tell the state of this pod: {error}; nothing is done to \
                     the pod until it does, and other pods are not affected"
                );
                recorder.pod(&entry.pod, None, EventType::Warning, HANGS, &message);
            }
        }
        let left = before.iter().filter(|(uid, _)| !now.contains_key(*uid));
        for (uid, _) in left {
            if let Some(entry) = board.get(uid) {
                let message = "the runtime tells the state of this pod again";
                recorder.pod(&entry.pod, None, EventType::Normal, ANSWERS, message);
            }
        }
        before = now;
        if pods.changed().await.is_err() {
            // PLEG ended, and the agent with it.
            return std::future::pending().await;
        }
    }
}

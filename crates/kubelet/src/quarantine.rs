//! Reports pods whose inspections hang to operators: that is the pod's trouble, and not the node's.
//! Reports a slow runtime, too.

use std::sync::Arc;

use rubelet_node_state::{
    events::{EventType, Recorder, Subject},
    pod_board::PodBoard,
};
use rubelet_pleg::{PlegHandle, Quarantine};

/// Reason of the event of a pod that the runtime does not report on.
const HANGS: &str = "RuntimeHangs";
/// Reason of the event at the end of that.
const ANSWERS: &str = "RuntimeAnswers";
/// Reason of the event of a node whose runtime is slow.
const SLOW: &str = "RuntimeSlow";
/// Reason of the event at the end of that.
const QUICK: &str = "RuntimeNotSlow";

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

/// Records an event at the node when its runtime becomes slow and when it is no longer, for ever.
pub(crate) async fn warn_of_slowness(pleg: PlegHandle, node: Arc<str>, recorder: Recorder) {
    let mut slow = pleg.slow();
    while slow.changed().await.is_ok() {
        let told = slow.borrow_and_update().clone();
        let (kind, reason, message) = match told {
            Some(what) => (
                EventType::Warning,
                SLOW,
                format!(
                    "the container runtime is slow: {what}; what no event tells is noticed late, \
                     and the node stays ready as long as anything is answered"
                ),
            ),
            None => (
                EventType::Normal,
                QUICK,
                "the container runtime has not been slow for a minute".to_owned(),
            ),
        };
        let subject = Subject::Node((&*node).into());
        recorder.record(subject, kind, reason, &message);
    }
    // PLEG ended, and the agent with it.
    std::future::pending::<()>().await;
}

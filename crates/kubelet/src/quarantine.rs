//! Records events for pods whose inspections hang, which concerns the pod and not the node, and for
//! a slow runtime.

use std::sync::Arc;

use rubelet_node_state::{
    events::{EventType, Recorder, Subject},
    pod_board::PodBoard,
};
use rubelet_pleg::{PlegHandle, Quarantine};

/// Event reason: the runtime does not respond to calls about the pod.
const HANGS: &str = "RuntimeHangs";
/// Event reason: it responds again.
const ANSWERS: &str = "RuntimeAnswers";
/// Event reason: the runtime of the node is slow.
const SLOW: &str = "RuntimeSlow";
/// Event reason: it is no longer slow.
const QUICK: &str = "RuntimeNotSlow";

/// Records an event when a pod enters quarantine and when it leaves, for ever.
pub(crate) async fn warn(pleg: PlegHandle, board: Arc<PodBoard>, recorder: Recorder) {
    let mut pods = pleg.quarantine();
    let mut before = Quarantine::default();
    loop {
        let now = pods.borrow_and_update().clone();
        let entered = now.iter().filter(|(uid, _)| !before.contains_key(*uid));
        for (uid, error) in entered {
            if let Some(entry) = board.get(uid) {
                let message = format!(
                    "the container runtime does not report the state of this pod: {error}; the pod \
                     is left as it is until the runtime responds, other pods are not affected"
                );
                recorder.pod(&entry.pod, None, EventType::Warning, HANGS, &message);
            }
        }
        let left = before.iter().filter(|(uid, _)| !now.contains_key(*uid));
        for (uid, _) in left {
            if let Some(entry) = board.get(uid) {
                let message = "the container runtime reports the state of this pod again";
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

/// Records an event on the node when its runtime becomes slow and when it is no longer slow, for
/// ever.
pub(crate) async fn warn_of_slowness(pleg: PlegHandle, node: Arc<str>, recorder: Recorder) {
    let mut slow = pleg.slow();
    while slow.changed().await.is_ok() {
        let report = slow.borrow_and_update().clone();
        let (kind, reason, message) = match report {
            Some(cause) => (
                EventType::Warning,
                SLOW,
                format!(
                    "the container runtime is slow: {cause}; changes without an event are noticed \
                     late, and the node stays ready while the runtime responds to any call"
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

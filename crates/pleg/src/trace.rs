//! A trace of PLEG's reports to pod tasks, in order, for tests that check its guarantees. Empty
//! until it is started.

use std::sync::OnceLock;

use parking_lot::Mutex;
use rubelet_base::{PodUid, Seq};
use rubelet_pod_plan::ObservedPod;

use super::lifecycle::{LifecycleKind, changes_between};

/// One entry of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceEvent {
    /// A step of this agent on a pod has ended.
    Stepped(PodUid),
    /// The inspection with this number found that a container has exited.
    Died {
        /// Its pod.
        uid: PodUid,
        /// Its identifier.
        id: Box<str>,
        /// Its exit code; `None` if the container is gone.
        code: Option<i32>,
        /// The number of the inspection.
        seq: Seq,
    },
    /// A pod's task began to work on the observation with this number.
    Handed(PodUid, Seq),
    /// The pod's task has executed its steps, at this number.
    Done(PodUid, Seq),
    /// The pod was removed, and its task has ended.
    Forgotten(PodUid),
}

/// The entries since the trace was last taken; none before it is started.
#[derive(Debug, Default)]
pub(super) struct Trace(OnceLock<Mutex<Vec<TraceEvent>>>);

impl Trace {
    pub(super) fn start(&self) {
        self.0.get_or_init(Mutex::default);
    }

    pub(super) fn note(&self, what: impl FnOnce() -> TraceEvent) {
        if let Some(list) = self.0.get() {
            list.lock().push(what());
        }
    }

    pub(super) fn note_ends(&self, uid: &PodUid, seq: Seq, old: &ObservedPod, new: &ObservedPod) {
        if self.0.get().is_none() {
            return;
        }
        for what in changes_between(old, new) {
            if what.kind == LifecycleKind::Died && what.name.is_some() {
                let mut all = new.containers.iter();
                let found = all.find(|found| found.id.as_str() == what.id);
                self.note(|| TraceEvent::Died {
                    uid: uid.clone(),
                    id: what.id.into(),
                    code: found.and_then(|found| Some(found.phase.exit()?.code)),
                    seq,
                });
            }
        }
    }

    pub(super) fn take(&self) -> Vec<TraceEvent> {
        let list = self.0.get();
        list.map(|list| std::mem::take(&mut *list.lock()))
            .unwrap_or_default()
    }
}

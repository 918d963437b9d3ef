//! What PLEG reported to whom, in order, for tests that compare it with the guarantees.

use parking_lot::Mutex;
use rubelet_base::{PodUid, Seq};
use rubelet_pod_plan::ObservedPod;

use super::lifecycle::{LifecycleKind, happened};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Traced {
    /// A step of this agent on a pod has ended.
    Stepped(PodUid),
    /// A container was seen to have ended, with this exit code, by the inspection with this number.
    /// Of one that is gone there is no code.
    Died {
        uid: PodUid,
        id: Box<str>,
        code: Option<i32>,
        seq: Seq,
    },
    /// A pod's task began to work on the observation with this number.
    Handed(PodUid, Seq),
    /// It has done what it had to, at this number.
    Done(PodUid, Seq),
    /// Nothing is left of a pod, and its task has ended.
    Forgotten(PodUid),
}

/// All of it since it was last taken.
#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<Vec<Traced>>);

impl Trace {
    pub(super) fn note(&self, what: Traced) {
        self.0.lock().push(what);
    }

    pub(super) fn note_ends(&self, uid: &PodUid, seq: Seq, old: &ObservedPod, new: &ObservedPod) {
        for what in happened(old, new) {
            if what.kind == LifecycleKind::Died && what.name.is_some() {
                let mut all = new.containers.iter();
                let found = all.find(|found| found.id.as_str() == what.id);
                self.note(Traced::Died {
                    uid: uid.clone(),
                    id: what.id.into(),
                    code: found.and_then(|found| Some(found.phase.exit()?.code)),
                    seq,
                });
            }
        }
    }

    /// What has happened since the last time.
    pub(crate) fn take(&self) -> Vec<Traced> {
        std::mem::take(&mut *self.0.lock())
    }
}

//! A record of what PLEG reported to whom, in order, for tests that compare it with the guarantees.
//! Nothing is kept before it is started.

use std::sync::OnceLock;

use parking_lot::Mutex;
use rubelet_base::{PodUid, Seq};
use rubelet_pod_plan::ObservedPod;

use super::lifecycle::{LifecycleKind, happened};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Traced {
    /// A step of this agent on a pod has ended.
    Stepped(PodUid),
    /// A container was seen to have ended, with this exit code, by the inspection with this number.
    /// Of one that is gone there is no code.
    Died {
        /// Its pod.
        uid: PodUid,
        /// Its identifier.
        id: Box<str>,
        /// Its exit code.
        code: Option<i32>,
        /// The number of the inspection.
        seq: Seq,
    },
    /// A pod's task began to work on the observation with this number.
    Handed(PodUid, Seq),
    /// It has done what it had to, at this number.
    Done(PodUid, Seq),
    /// Nothing is left of a pod, and its task has ended.
    Forgotten(PodUid),
}

/// All of it since it was last taken; nothing before it is started.
#[derive(Debug, Default)]
pub(super) struct Trace(OnceLock<Mutex<Vec<Traced>>>);

impl Trace {
    pub(super) fn start(&self) {
        self.0.get_or_init(Mutex::default);
    }

    pub(super) fn note(&self, what: impl FnOnce() -> Traced) {
        if let Some(list) = self.0.get() {
            list.lock().push(what());
        }
    }

    pub(super) fn note_ends(&self, uid: &PodUid, seq: Seq, old: &ObservedPod, new: &ObservedPod) {
        if self.0.get().is_none() {
            return;
        }
        for what in happened(old, new) {
            if what.kind == LifecycleKind::Died && what.name.is_some() {
                let mut all = new.containers.iter();
                let found = all.find(|found| found.id.as_str() == what.id);
                self.note(|| Traced::Died {
                    uid: uid.clone(),
                    id: what.id.into(),
                    code: found.and_then(|found| Some(found.phase.exit()?.code)),
                    seq,
                });
            }
        }
    }

    pub(super) fn take(&self) -> Vec<Traced> {
        let list = self.0.get();
        list.map(|list| std::mem::take(&mut *list.lock()))
            .unwrap_or_default()
    }
}

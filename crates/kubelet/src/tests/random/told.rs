//! What PLEG promises the pods' tasks, checked against what it told them.

use std::{collections::BTreeMap, time::Duration};

use rubelet_base::{PodUid, Seq};
use rubelet_pleg::trace::Traced;
use tokio::time::Instant;

use crate::tests::node::Node;

/// A container that was seen to have ended, by which inspection, and when that was reported.
#[derive(Debug)]
struct End {
    id: Box<str>,
    seq: Seq,
    told: Instant,
}

/// How long a pod's task may be at work on something else.
const AT_WORK: Duration = Duration::from_secs(10);

/// What one agent was told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Pods whose tasks are at work, and whether they have done anything yet.
    at_work: BTreeMap<PodUid, bool>,
    /// When each pod's task was last done with doing something.
    done: BTreeMap<PodUid, Seq>,
    /// Ends that no pod's task has worked on.
    ends: BTreeMap<PodUid, Vec<End>>,
    /// The exit codes that this agent and those before it told, by container.
    pub(super) codes: BTreeMap<String, i32>,
}

impl Told {
    /// Another agent: it knows nothing, and its numbers start again.
    pub(super) fn forget(&mut self) {
        self.at_work.clear();
        self.done.clear();
        self.ends.clear();
    }

    /// Adds what has happened since the last time. I1: what a task is given to work on was
    /// looked at after it had last done something. What it gave up and continues by itself, such as the
    /// start of a container whose pod is being removed, is no part of that.
    pub(super) fn follow(&mut self, node: &Node) {
        for what in node.agent().pleg().take_trace() {
            match what {
                Traced::Stepped(uid) => {
                    self.at_work.entry(uid).and_modify(|acted| *acted = true);
                }
                Traced::Done(uid, seq) => {
                    if self.at_work.remove(&uid) == Some(true) {
                        self.done.insert(uid, seq);
                    }
                }
                Traced::Died { uid, id, code, seq } => {
                    if let Some(code) = code {
                        self.codes.insert((&*id).into(), code);
                    }
                    let told = Instant::now();
                    let ends = self.ends.entry(uid).or_default();
                    ends.push(End { id, seq, told });
                }
                Traced::Handed(uid, seq) => {
                    let done = self.done.get(&uid).copied().unwrap_or(Seq::ZERO);
                    assert!(
                        seq > done,
                        "I1: {uid} was told {seq:?} after it was done at {done:?}\n{}",
                        node.account()
                    );
                    self.at_work.insert(uid.clone(), false);
                    if let Some(ends) = self.ends.get_mut(&uid) {
                        ends.retain(|end| end.seq > seq);
                    }
                }
                Traced::Forgotten(uid) => {
                    self.at_work.remove(&uid);
                    self.done.remove(&uid);
                    self.ends.remove(&uid);
                }
            }
        }
    }

    /// I4: after all trouble, each end was followed by a round of the pod's task that began after it.
    /// A pod without a task has nobody to tell.
    pub(super) fn assert_all_worked_on(&self, node: &Node) {
        for (uid, ends) in &self.ends {
            let has_task = node.agent().pods.get(uid).is_some();
            let forgotten = ends.iter().find(|end| end.told.elapsed() >= AT_WORK);
            let forgotten = forgotten.map(|end| &*end.id);
            assert!(
                forgotten.is_none() || !has_task,
                "I4: nobody worked on the end of {forgotten:?} of {uid}\n{}",
                node.account()
            );
        }
    }
}

//! Checks PLEG's guarantees to pod tasks against the trace of its reports.

use std::{collections::BTreeMap, time::Duration};

use rubelet_base::{PodUid, Seq};
use rubelet_pleg::trace::TraceEvent;
use tokio::time::Instant;

use crate::tests::node::Node;

/// An exit that PLEG reported, with the number of the inspection and the time of the report.
#[derive(Debug)]
struct DeliveredExit {
    id: Box<str>,
    seq: Seq,
    delivered: Instant,
}

/// Longest time that a pod's task may spend on other steps.
const AT_WORK: Duration = Duration::from_secs(10);

/// The state of the check for one agent.
#[derive(Debug, Default)]
pub(super) struct DeliveryCheck {
    /// Pods whose tasks are at work, and whether they have executed a step yet.
    at_work: BTreeMap<PodUid, bool>,
    /// Number at which each pod's task last finished its steps.
    done: BTreeMap<PodUid, Seq>,
    /// Exits that no pod's task has handled.
    ends: BTreeMap<PodUid, Vec<DeliveredExit>>,
    /// The exit codes that this agent and earlier ones reported, by container.
    pub(super) codes: BTreeMap<String, i32>,
}

impl DeliveryCheck {
    /// Resets the state for a new agent, whose numbers start again.
    pub(super) fn forget(&mut self) {
        self.at_work.clear();
        self.done.clear();
        self.ends.clear();
    }

    /// Processes the trace since the last call. I1: the inspection that a task acts on began after
    /// its last step. Calls that the task abandoned and that still complete, such as the start of a
    /// container whose pod is being removed, do not count.
    pub(super) fn follow(&mut self, node: &Node) {
        for what in node.agent().pleg().take_trace() {
            match what {
                TraceEvent::Stepped(uid) => {
                    self.at_work.entry(uid).and_modify(|acted| *acted = true);
                }
                TraceEvent::Done(uid, seq) => {
                    if self.at_work.remove(&uid) == Some(true) {
                        self.done.insert(uid, seq);
                    }
                }
                TraceEvent::Died { uid, id, code, seq } => {
                    if let Some(code) = code {
                        self.codes.insert((&*id).into(), code);
                    }
                    let delivered = Instant::now();
                    let ends = self.ends.entry(uid).or_default();
                    ends.push(DeliveredExit { id, seq, delivered });
                }
                TraceEvent::Handed(uid, seq) => {
                    let done = self.done.get(&uid).copied().unwrap_or(Seq::ZERO);
                    assert!(
                        seq > done,
                        "I1: {uid} was given {seq:?} after it was done at {done:?}\n{}",
                        node.failure_report()
                    );
                    self.at_work.insert(uid.clone(), false);
                    if let Some(ends) = self.ends.get_mut(&uid) {
                        ends.retain(|end| end.seq > seq);
                    }
                }
                TraceEvent::Forgotten(uid) => {
                    self.at_work.remove(&uid);
                    self.done.remove(&uid);
                    self.ends.remove(&uid);
                }
            }
        }
    }

    /// I4: after all faults, each exit was followed by a round of the pod's task that began after
    /// it, if the pod has a task.
    pub(super) fn assert_all_worked_on(&self, node: &Node) {
        for (uid, ends) in &self.ends {
            let has_task = node.agent().pods.get(uid).is_some();
            let forgotten = ends.iter().find(|end| end.delivered.elapsed() >= AT_WORK);
            let forgotten = forgotten.map(|end| &*end.id);
            assert!(
                forgotten.is_none() || !has_task,
                "I4: the exit of {forgotten:?} of {uid} was not handled\n{}",
                node.failure_report()
            );
        }
    }
}

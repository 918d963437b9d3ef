//! The true state of the node, followed in the oracle's record, and checks of what must never
//! happen.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rubelet_pleg::{LifecycleEvent, LifecycleKind as Kind, MAX_INSPECTIONS};
use rubelet_pod_plan::{ContainerPhase, ObservedPod};
use rubelet_sim::{EntryKind, Subject};

use crate::tests::node::Node;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ActualState {
    Created,
    Running,
    Exited(i32),
}

/// A status call that is in flight.
#[derive(Debug)]
struct Read {
    pod: String,
    id: Option<String>,
    at: Duration,
}

fn is_read(call: &str) -> bool {
    ["ContainerStatus", "PodSandboxStatus"].contains(&call)
}

/// The sandboxes and containers of the runtime.
#[derive(Debug, Default)]
pub(super) struct Truth {
    mark: usize,
    sandboxes: BTreeMap<String, (String, bool)>,
    containers: BTreeMap<String, (String, String, ActualState)>,
    /// Status calls in flight, by number.
    reads: BTreeMap<u64, Read>,
    /// When a sandbox or container last changed.
    pub(super) changed: Duration,
}

impl Truth {
    /// Processes the record since the last call. Checks that nothing runs twice at a time and that
    /// no pod is inspected twice at a time.
    pub(super) fn follow(&mut self, node: &Node, counts_reads: bool) {
        let entries = node.sim.entries_since(self.mark);
        self.mark += entries.len();
        for entry in entries {
            let before = self.changed;
            self.changed = entry.at;
            match entry.what {
                EntryKind::ContainerCreated(of) => {
                    let row = (of.pod_uid.clone(), of.name.clone(), ActualState::Created);
                    self.containers.insert(of.id.clone(), row);
                }
                EntryKind::ContainerStarted(of) => {
                    let twice = self.containers.values().any(|(uid, name, state)| {
                        *uid == of.pod_uid && *name == of.name && *state == ActualState::Running
                    });
                    assert!(!twice, "{of} runs twice\n{}", node.failure_report());
                    self.set(&of.id, ActualState::Running);
                }
                EntryKind::ContainerNotStarted(of) => self.set(&of.id, ActualState::Exited(128)),
                EntryKind::ContainerExited { instance, code, .. } => {
                    self.set(&instance.id, ActualState::Exited(code));
                }
                EntryKind::ContainerRemoved(of) => {
                    self.containers.remove(&of.id);
                }
                EntryKind::SandboxReady { id, pod_uid, .. } => {
                    let mut others = self.sandboxes.values();
                    let twice = others.any(|(uid, ready)| *uid == pod_uid && *ready);
                    assert!(
                        !twice,
                        "two sandboxes of {pod_uid}\n{}",
                        node.failure_report()
                    );
                    self.sandboxes.insert(id, (pod_uid, true));
                }
                EntryKind::SandboxStopped { id, .. } => {
                    if let Some((_, ready)) = self.sandboxes.get_mut(&id) {
                        *ready = false;
                    }
                }
                EntryKind::SandboxRemoved { id, .. } => {
                    self.sandboxes.remove(&id);
                }
                EntryKind::CallBegan {
                    number,
                    call,
                    subject,
                } => {
                    self.changed = before;
                    if counts_reads && is_read(call) {
                        self.read_began(number, &subject, entry.at, node);
                    }
                }
                EntryKind::CallEnded { number, .. } => {
                    self.changed = before;
                    self.reads.remove(&number);
                }
                _ => self.changed = before,
            }
        }
    }

    /// I7: all status calls of a pod in flight belong to one inspection, which begins them at the
    /// same time, and no more pods are inspected at a time than there are slots, slow ones
    /// included.
    fn read_began(&mut self, number: u64, subject: &Subject, at: Duration, node: &Node) {
        let Some(pod) = subject.pod_uid.clone() else {
            return;
        };
        let read = Read {
            pod,
            id: subject.id.clone(),
            at,
        };
        for other in self.reads.values().filter(|other| other.pod == read.pod) {
            assert!(
                other.at == at && other.id != read.id,
                "I7: {other:?} was in flight when {read:?} began\n{}",
                node.failure_report()
            );
        }
        self.reads.insert(number, read);
        let pods: BTreeSet<_> = self.reads.values().map(|read| &*read.pod).collect();
        assert!(
            pods.len() <= MAX_INSPECTIONS,
            "I7: {} pods are inspected\n{}",
            pods.len(),
            node.failure_report()
        );
    }

    fn set(&mut self, id: &str, state: ActualState) {
        if let Some((.., old)) = self.containers.get_mut(id) {
            *old = state;
        }
    }

    /// The difference between the observation of a pod and the truth, if there is one.
    pub(super) fn differs(&self, uid: &str, known: &ObservedPod) -> Option<String> {
        let is: BTreeMap<_, _> = self
            .containers
            .iter()
            .filter(|(_, (of, ..))| of == uid)
            .map(|(id, (.., state))| (id.as_str(), Some(*state)))
            .collect();
        let seen: BTreeMap<_, _> = known
            .containers
            .iter()
            .map(|found| {
                let state = match &found.phase {
                    ContainerPhase::Created => Some(ActualState::Created),
                    ContainerPhase::Running { .. } => Some(ActualState::Running),
                    ContainerPhase::Exited(exit) => Some(ActualState::Exited(exit.code)),
                    ContainerPhase::Unknown => None,
                };
                (found.id.as_str(), state)
            })
            .collect();
        let ready: BTreeMap<_, _> = self
            .sandboxes
            .iter()
            .filter(|(_, (of, _))| of == uid)
            .map(|(id, (_, ready))| (id.as_str(), *ready))
            .collect();
        let seen_ready: BTreeMap<_, _> = known
            .sandboxes
            .iter()
            .map(|found| (found.id.as_str(), found.ready))
            .collect();
        let same = is == seen && ready == seen_ready;
        (!same).then(|| format!("{uid}: true: {is:?} {ready:?}\nknown: {seen:?} {seen_ready:?}"))
    }

    /// The UID of a pod and the ID of one of its running containers.
    pub(super) fn running(&self) -> Option<(String, String)> {
        let mut all = self.containers.iter();
        let found = all.find(|(_, (.., state))| *state == ActualState::Running);
        found.map(|(id, (uid, ..))| (uid.clone(), id.clone()))
    }

    /// The UIDs of pods that have sandboxes or containers in the runtime.
    pub(super) fn pods(&self) -> BTreeSet<String> {
        let sandboxes = self.sandboxes.values().map(|(uid, _)| uid.clone());
        let containers = self.containers.values().map(|(uid, ..)| uid.clone());
        sandboxes.chain(containers).collect()
    }
}

/// Whether this container is observed as running.
pub(super) fn is_known_to_run(known: &ObservedPod, id: &str) -> bool {
    let mut all = known.containers.iter();
    all.any(|found| {
        found.id.as_str() == id && matches!(found.phase, ContainerPhase::Running { .. })
    })
}

/// I3: of each container one start, one exit and one removal is reported, in this order. A pod that
/// an incomplete list omits may be forgotten during its removal; when it is found again, its
/// containers are reported again, with their exits.
pub(super) fn assert_once(events: &[LifecycleEvent], holes: bool, node: &Node) {
    let mut seen: BTreeMap<&str, Vec<Kind>> = BTreeMap::new();
    for event in events.iter().filter(|event| !event.id.is_empty()) {
        let reported = seen.entry(&event.id).or_default();
        let count = |kind| reported.iter().filter(|of| **of == kind).count();
        let fine = match event.kind {
            // A container whose state was unknown for a while is reported as started again.
            Kind::Started => {
                count(Kind::Died) == 0
                    && (count(Kind::Started) == 0
                        || holes
                        || reported.last() == Some(&Kind::Changed))
            }
            Kind::Died => (count(Kind::Died) == 0 || holes) && count(Kind::Removed) == 0,
            Kind::Removed => count(Kind::Died) > 0 && count(Kind::Removed) == 0,
            Kind::Changed | Kind::PodSync => count(Kind::Died) == 0,
        };
        reported.push(event.kind);
        assert!(
            fine,
            "{} was reported as {reported:?}\n{:#?}\n{}",
            event.id,
            events
                .iter()
                .filter(|of| of.id == event.id)
                .collect::<Vec<_>>(),
            node.failure_report()
        );
    }
}

//! Lifecycle events: the differences between two observations of a pod, by the names of the
//! kubelet's PLEG.

use rubelet_pod_plan::{ContainerPhase, ObservedPod};

/// The kind of a lifecycle event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LifecycleKind {
    /// It runs.
    Started,
    /// It has ended.
    Died,
    /// The runtime has no record of it any more.
    Removed,
    /// The runtime is not sure of its state.
    Changed,
    /// Nothing happened to any of them, and the pod was due for a sync.
    PodSync,
}

impl LifecycleKind {
    /// The name, as the kubelet writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Started => "ContainerStarted",
            Self::Died => "ContainerDied",
            Self::Removed => "ContainerRemoved",
            Self::Changed => "ContainerChanged",
            Self::PodSync => "PodSync",
        }
    }
}

/// One thing that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LifecycleChange<'a> {
    pub(super) kind: LifecycleKind,
    /// Identifier of the container or the sandbox.
    pub(super) id: &'a str,
    /// The container's name; `None` for a sandbox.
    pub(super) name: Option<&'a str>,
}

/// The state of a container or sandbox, as far as lifecycle events distinguish it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SeenState {
    Running,
    Exited,
    Unknown,
    Gone,
}

/// All that happened from `old` to `new`, in the order of the records. Of what was seen only at its
/// end, the end is reported and no start is made up.
pub(super) fn happened<'a>(old: &'a ObservedPod, new: &'a ObservedPod) -> Vec<LifecycleChange<'a>> {
    let mut found = Vec::new();
    for now in &new.containers {
        let before = old.containers.iter().find(|before| before.id == now.id);
        let before = before.map_or(SeenState::Gone, |before| state(&before.phase));
        let name = Some(&*now.name);
        tell(&mut found, before, state(&now.phase), now.id.as_str(), name);
    }
    for before in &old.containers {
        if !new.containers.iter().any(|now| now.id == before.id) {
            let (state, name) = (state(&before.phase), Some(&*before.name));
            tell(&mut found, state, SeenState::Gone, before.id.as_str(), name);
        }
    }
    for now in &new.sandboxes {
        let before = old.sandboxes.iter().find(|before| before.id == now.id);
        let before = before.map_or(SeenState::Gone, |before| ready(before.ready));
        tell(&mut found, before, ready(now.ready), now.id.as_str(), None);
    }
    for before in &old.sandboxes {
        if !new.sandboxes.iter().any(|now| now.id == before.id) {
            let state = ready(before.ready);
            tell(&mut found, state, SeenState::Gone, before.id.as_str(), None);
        }
    }
    found
}

fn tell<'a>(
    found: &mut Vec<LifecycleChange<'a>>,
    before: SeenState,
    now: SeenState,
    id: &'a str,
    name: Option<&'a str>,
) {
    let mut add = |kind| found.push(LifecycleChange { kind, id, name });
    match (before, now) {
        (before, now) if before == now => {}
        (_, SeenState::Running) => add(LifecycleKind::Started),
        (_, SeenState::Exited) => add(LifecycleKind::Died),
        (_, SeenState::Unknown) => add(LifecycleKind::Changed),
        (SeenState::Exited, SeenState::Gone) => add(LifecycleKind::Removed),
        (_, SeenState::Gone) => {
            add(LifecycleKind::Died);
            add(LifecycleKind::Removed);
        }
    }
}

/// A container that was made and not started is unknown to upstream's generator, too.
fn state(phase: &ContainerPhase) -> SeenState {
    match phase {
        ContainerPhase::Running { .. } => SeenState::Running,
        ContainerPhase::Exited(_) => SeenState::Exited,
        ContainerPhase::Created | ContainerPhase::Unknown => SeenState::Unknown,
    }
}

fn ready(ready: bool) -> SeenState {
    if ready {
        SeenState::Running
    } else {
        SeenState::Exited
    }
}

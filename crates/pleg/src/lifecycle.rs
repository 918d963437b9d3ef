//! Lifecycle events: the differences between two observations of a pod, with the names of the
//! kubelet's PLEG.

use rubelet_pod_plan::{ContainerPhase, ObservedPod};

/// The kind of a lifecycle event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LifecycleKind {
    /// It started.
    Started,
    /// It exited.
    Died,
    /// It was removed from the runtime.
    Removed,
    /// Its state is now unknown.
    Changed,
    /// The pod changed without a change of state of any container or sandbox.
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

/// A change of state of one container or sandbox.
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
enum LifecycleState {
    Running,
    Exited,
    Unknown,
    Gone,
}

/// All changes from `old` to `new`, in the order of the records. For a container that was first
/// seen after its exit, no start is reported.
pub(super) fn changes_between<'a>(
    old: &'a ObservedPod,
    new: &'a ObservedPod,
) -> Vec<LifecycleChange<'a>> {
    let mut found = Vec::new();
    for now in &new.containers {
        let before = old.containers.iter().find(|before| before.id == now.id);
        let before = before.map_or(LifecycleState::Gone, |before| state(&before.phase));
        let name = Some(&*now.name);
        tell(&mut found, before, state(&now.phase), now.id.as_str(), name);
    }
    for before in &old.containers {
        if !new.containers.iter().any(|now| now.id == before.id) {
            let (state, name) = (state(&before.phase), Some(&*before.name));
            tell(
                &mut found,
                state,
                LifecycleState::Gone,
                before.id.as_str(),
                name,
            );
        }
    }
    for now in &new.sandboxes {
        let before = old.sandboxes.iter().find(|before| before.id == now.id);
        let before = before.map_or(LifecycleState::Gone, |before| ready(before.ready));
        tell(&mut found, before, ready(now.ready), now.id.as_str(), None);
    }
    for before in &old.sandboxes {
        if !new.sandboxes.iter().any(|now| now.id == before.id) {
            let state = ready(before.ready);
            tell(
                &mut found,
                state,
                LifecycleState::Gone,
                before.id.as_str(),
                None,
            );
        }
    }
    found
}

fn tell<'a>(
    found: &mut Vec<LifecycleChange<'a>>,
    before: LifecycleState,
    now: LifecycleState,
    id: &'a str,
    name: Option<&'a str>,
) {
    let mut add = |kind| found.push(LifecycleChange { kind, id, name });
    match (before, now) {
        (before, now) if before == now => {}
        (_, LifecycleState::Running) => add(LifecycleKind::Started),
        (_, LifecycleState::Exited) => add(LifecycleKind::Died),
        (_, LifecycleState::Unknown) => add(LifecycleKind::Changed),
        (LifecycleState::Exited, LifecycleState::Gone) => add(LifecycleKind::Removed),
        (_, LifecycleState::Gone) => {
            add(LifecycleKind::Died);
            add(LifecycleKind::Removed);
        }
    }
}

/// A container that was created and not started is unknown, as in the kubelet's PLEG.
fn state(phase: &ContainerPhase) -> LifecycleState {
    match phase {
        ContainerPhase::Running { .. } => LifecycleState::Running,
        ContainerPhase::Exited(_) => LifecycleState::Exited,
        ContainerPhase::Created | ContainerPhase::Unknown => LifecycleState::Unknown,
    }
}

fn ready(ready: bool) -> LifecycleState {
    if ready {
        LifecycleState::Running
    } else {
        LifecycleState::Exited
    }
}

//! The four conditions, their transition times and events.

use jiff::Timestamp;

use super::object::NodeCondition;

/// `status` of a condition that holds.
pub const TRUE: &str = "True";
/// `status` of a condition that does not hold.
pub const FALSE: &str = "False";
/// `status` of a condition that has not been reported lately.
pub const UNKNOWN: &str = "Unknown";
/// Type of the condition that allows scheduling.
pub const READY: &str = "Ready";

/// Whether a node with these conditions is ready for pods.
#[must_use]
pub fn is_ready(conditions: &[NodeCondition]) -> bool {
    let mut ready = conditions.iter().filter(|one| *one.kind == *READY);
    ready.any(|one| *one.status == *TRUE)
}

/// The contents of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ConditionText {
    reason: &'static str,
    message: &'static str,
    event: &'static str,
}

/// A condition about the pressure on a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PressureCondition {
    kind: &'static str,
    short: ConditionText,
    enough: ConditionText,
}

/// MemoryPressure.
pub(crate) const MEMORY_PRESSURE: PressureCondition = PressureCondition {
    kind: "MemoryPressure",
    short: ConditionText {
        reason: "KubeletHasInsufficientMemory",
        message: "kubelet has insufficient memory available",
        event: "NodeHasInsufficientMemory",
    },
    enough: ConditionText {
        reason: "KubeletHasSufficientMemory",
        message: "kubelet has sufficient memory available",
        event: "NodeHasSufficientMemory",
    },
};

/// DiskPressure.
pub(crate) const DISK_PRESSURE: PressureCondition = PressureCondition {
    kind: "DiskPressure",
    short: ConditionText {
        reason: "KubeletHasDiskPressure",
        message: "kubelet has disk pressure",
        event: "NodeHasDiskPressure",
    },
    enough: ConditionText {
        reason: "KubeletHasNoDiskPressure",
        message: "kubelet has no disk pressure",
        event: "NodeHasNoDiskPressure",
    },
};

/// PIDPressure.
pub(crate) const PID_PRESSURE: PressureCondition = PressureCondition {
    kind: "PIDPressure",
    short: ConditionText {
        reason: "KubeletHasInsufficientPID",
        message: "kubelet has insufficient PID available",
        event: "NodeHasInsufficientPID",
    },
    enough: ConditionText {
        reason: "KubeletHasSufficientPID",
        message: "kubelet has sufficient PID available",
        event: "NodeHasSufficientPID",
    },
};

/// Transitions that the API server does not have yet. Without these a condition that changed while
/// the API server was unreachable would change again, with an event, on each computation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Transitions {
    pending: Vec<Transition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Transition {
    kind: &'static str,
    to: Box<str>,
    since: Timestamp,
    /// The status and transition time in the API server at that time.
    from: Option<(Box<str>, Option<Timestamp>)>,
}

impl Transitions {
    /// The transition time of the status, and true if it is reported for the first time.
    fn since(
        &mut self,
        shown: Option<&NodeCondition>,
        kind: &'static str,
        to: &str,
        now: Timestamp,
    ) -> (Timestamp, bool) {
        let place = self.pending.iter().position(|one| one.kind == kind);
        let shown = shown.map(|one| (one.status.clone(), one.last_transition_time));
        if let Some((status, since)) = &shown
            && **status == *to
        {
            if let Some(place) = place {
                self.pending.swap_remove(place);
            }
            return (since.unwrap_or(now), false);
        }
        let fresh = Transition {
            kind,
            to: to.into(),
            since: now,
            from: shown,
        };
        match place.map(|place| &mut self.pending[place]) {
            Some(old) if old.to == fresh.to && old.from == fresh.from => (old.since, false),
            Some(old) => {
                *old = fresh;
                (now, true)
            }
            None => {
                self.pending.push(fresh);
                (now, true)
            }
        }
    }
}

/// Sets a pressure condition. Returns the reason of the event if it changed.
pub(super) fn set_pressure(
    conditions: &mut Vec<NodeCondition>,
    transitions: &mut Transitions,
    condition: &PressureCondition,
    short: bool,
    now: Timestamp,
) -> Option<&'static str> {
    let place = conditions
        .iter()
        .position(|one| *one.kind == *condition.kind);
    let (to, said) = match short {
        true => (TRUE, condition.short),
        false => (FALSE, condition.enough),
    };
    let shown = place.map(|place| &conditions[place]);
    let changes = shown.is_none_or(|shown| *shown.status != *to);
    let (since, first) = transitions.since(shown, condition.kind, to, now);
    let place = place.unwrap_or_else(|| {
        conditions.push(NodeCondition {
            kind: condition.kind.into(),
            ..NodeCondition::default()
        });
        conditions.len() - 1
    });
    let entry = &mut conditions[place];
    if changes {
        entry.status = to.into();
        entry.reason = said.reason.into();
        entry.message = said.message.into();
    }
    entry.last_transition_time = Some(since);
    entry.last_heartbeat_time = Some(now);
    first.then_some(said.event)
}

/// Sets the condition Ready, which is true without a `problem`. Returns the reason of the event if
/// it changed; the first report of a node is not a change.
pub(super) fn set_ready(
    conditions: &mut Vec<NodeCondition>,
    transitions: &mut Transitions,
    problem: Option<&str>,
    now: Timestamp,
) -> Option<&'static str> {
    let place = conditions.iter().position(|one| *one.kind == *READY);
    let (status, reason, message, event) = match problem {
        None => (
            TRUE,
            "KubeletReady",
            "kubelet is posting ready status",
            "NodeReady",
        ),
        Some(problem) => (FALSE, "KubeletNotReady", problem, "NodeNotReady"),
    };
    let shown = place.map(|place| &conditions[place]);
    let (since, first) = transitions.since(shown, READY, status, now);
    let entry = NodeCondition {
        kind: READY.into(),
        status: status.into(),
        last_heartbeat_time: Some(now),
        last_transition_time: Some(since),
        reason: reason.into(),
        message: message.into(),
    };
    match place {
        Some(place) => {
            conditions[place] = entry;
            first.then_some(event)
        }
        None => {
            conditions.push(entry);
            None
        }
    }
}

#[cfg(test)]
mod tests;

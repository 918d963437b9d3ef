//! The four conditions, when they last changed, and the events that tell of it.

use jiff::Timestamp;

use super::object::NodeCondition;

/// `status` of a condition that holds.
pub const TRUE: &str = "True";
/// `status` of a condition that does not hold.
pub const FALSE: &str = "False";
/// `status` of a condition that nobody told lately.
pub const UNKNOWN: &str = "Unknown";
/// Type of the condition that lets pods come.
pub const READY: &str = "Ready";

/// What is said of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Said {
    reason: &'static str,
    message: &'static str,
    event: &'static str,
}

/// A condition about something that can run short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PressureCondition {
    kind: &'static str,
    short: Said,
    enough: Said,
}

/// MemoryPressure.
pub const MEMORY_PRESSURE: PressureCondition = PressureCondition {
    kind: "MemoryPressure",
    short: Said {
        reason: "KubeletHasInsufficientMemory",
        message: "kubelet has insufficient memory available",
        event: "NodeHasInsufficientMemory",
    },
    enough: Said {
        reason: "KubeletHasSufficientMemory",
        message: "kubelet has sufficient memory available",
        event: "NodeHasSufficientMemory",
    },
};

/// DiskPressure.
pub const DISK_PRESSURE: PressureCondition = PressureCondition {
    kind: "DiskPressure",
    short: Said {
        reason: "KubeletHasDiskPressure",
        message: "kubelet has disk pressure",
        event: "NodeHasDiskPressure",
    },
    enough: Said {
        reason: "KubeletHasNoDiskPressure",
        message: "kubelet has no disk pressure",
        event: "NodeHasNoDiskPressure",
    },
};

/// PIDPressure.
pub const PID_PRESSURE: PressureCondition = PressureCondition {
    kind: "PIDPressure",
    short: Said {
        reason: "KubeletHasInsufficientPID",
        message: "kubelet has insufficient PID available",
        event: "NodeHasInsufficientPID",
    },
    enough: Said {
        reason: "KubeletHasSufficientPID",
        message: "kubelet has sufficient PID available",
        event: "NodeHasSufficientPID",
    },
};

/// Transitions that the API server does not show yet. Without this memory a condition that changed
/// while the API server was away would change anew, with an event, each time it is computed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transitions {
    pending: Vec<Transition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Transition {
    kind: &'static str,
    to: Box<str>,
    since: Timestamp,
    /// The status and the time of the change that the API server showed then.
    from: Option<(Box<str>, Option<Timestamp>)>,
}

impl Transitions {
    /// Since when the condition has that status, and whether this is the first time of saying so.
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

/// Sets a condition about a shortage. The reason of the event, if it changed.
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

/// Sets the condition Ready; it is ready unless there is a reason why not. The reason of the event,
/// if it changed; a node that never said anything before changes nothing.
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
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn shown(kind: &str, status: &str, second: i64) -> NodeCondition {
        NodeCondition {
            kind: kind.into(),
            status: status.into(),
            last_transition_time: Some(at(second)),
            last_heartbeat_time: Some(at(second)),
            reason: "Old".into(),
            message: "old words".into(),
        }
    }

    fn ready(
        list: &mut Vec<NodeCondition>,
        transitions: &mut Transitions,
        problem: Option<&str>,
        second: i64,
    ) -> (i64, Option<&'static str>) {
        let event = set_ready(list, transitions, problem, at(second));
        let since = list.last().unwrap().last_transition_time.unwrap();
        (since.as_second(), event)
    }

    #[test]
    fn a_status_that_stays_keeps_its_time_and_its_words() {
        let mut list = vec![shown("MemoryPressure", FALSE, 5)];
        let mut transitions = Transitions::default();
        let event = set_pressure(&mut list, &mut transitions, &MEMORY_PRESSURE, false, at(70));
        assert_eq!(event, None);
        assert_eq!(list[0].last_transition_time, Some(at(5)));
        assert_eq!(list[0].last_heartbeat_time, Some(at(70)));
        assert_eq!(&*list[0].reason, "Old");
    }

    #[test]
    fn a_change_has_its_words_its_time_and_one_event() {
        let mut list = vec![shown("DiskPressure", UNKNOWN, 5)];
        let mut transitions = Transitions::default();
        let event = set_pressure(&mut list, &mut transitions, &DISK_PRESSURE, true, at(70));
        assert_eq!(event, Some("NodeHasDiskPressure"));
        let expected = NodeCondition {
            kind: "DiskPressure".into(),
            status: TRUE.into(),
            last_heartbeat_time: Some(at(70)),
            last_transition_time: Some(at(70)),
            reason: "KubeletHasDiskPressure".into(),
            message: "kubelet has disk pressure".into(),
        };
        assert_eq!(list, [expected]);
    }

    #[test]
    fn a_change_that_can_not_be_sent_keeps_the_time_at_which_it_was_made() {
        let mut transitions = Transitions::default();
        let api = vec![shown(READY, TRUE, 5)];
        let mut compute =
            |problem, second| ready(&mut api.clone(), &mut transitions, problem, second);
        assert_eq!(
            compute(Some("runtime down"), 70),
            (70, Some("NodeNotReady"))
        );
        assert_eq!(compute(Some("runtime down"), 80), (70, None));
        assert_eq!(compute(None, 90), (5, None), "nobody saw it");
        assert_eq!(compute(Some("again"), 95), (95, Some("NodeNotReady")));
    }

    #[test]
    fn a_condition_that_others_changed_meanwhile_changes_anew() {
        let mut transitions = Transitions::default();
        let lost = |second| vec![shown(READY, UNKNOWN, second)];
        let mut compute = |mut api: Vec<_>, second| ready(&mut api, &mut transitions, None, second);
        assert_eq!(compute(lost(50), 60), (60, Some("NodeReady")));
        assert_eq!(compute(lost(50), 70), (60, None));
        assert_eq!(compute(lost(75), 80), (80, Some("NodeReady")));
    }

    #[test]
    fn a_node_that_is_ready_from_the_begin_on_has_no_event() {
        let mut list = Vec::new();
        let found = ready(&mut list, &mut Transitions::default(), None, 7);
        assert_eq!(found, (7, None));
        assert_eq!(&*list[0].message, "kubelet is posting ready status");
    }
}

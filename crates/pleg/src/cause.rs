//! Causes of inspections.

use std::fmt;

use rubelet_cri::v1::ContainerEventType;

use super::inspection_queue::Urgency;

/// What first requested an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// An event of the runtime.
    Event(ContainerEventType),
    /// A step of this agent ended.
    Step,
    /// A pod's task wants to know.
    Demand,
    /// The kernel reports that the process of a container is gone.
    Kernel,
    /// A list differed from the record.
    Relist,
    /// A state that changes without an event, or an inspection that failed, is checked again.
    Recheck,
}

impl Cause {
    /// One word for metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Event(_) => "event",
            Self::Step => "step",
            Self::Demand => "demand",
            Self::Kernel => "kernel",
            Self::Relist => "relist",
            Self::Recheck => "recheck",
        }
    }

    /// The priority of the inspection.
    pub(super) fn urgency(self) -> Urgency {
        match self {
            Self::Demand => Urgency::Waiting,
            Self::Event(ContainerEventType::ContainerStoppedEvent) => Urgency::Stopped,
            Self::Kernel => Urgency::Stopped,
            Self::Event(_) | Self::Step => Urgency::Change,
            Self::Relist | Self::Recheck => Urgency::Reconcile,
        }
    }

    /// Of two causes of one inspection, the one to name: an event, else the first.
    pub(super) fn named(self, later: Self) -> Self {
        match (self, later) {
            (Self::Event(_), _) => self,
            (_, Self::Event(_)) => later,
            _ => self,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(kind) => write!(f, "event {}", event_name(*kind)),
            other => f.write_str(other.as_str()),
        }
    }
}

/// The type of an event as users of the runtime know it, such as `STOPPED`.
#[must_use]
pub fn event_name(kind: ContainerEventType) -> &'static str {
    match kind {
        ContainerEventType::ContainerCreatedEvent => "CREATED",
        ContainerEventType::ContainerStartedEvent => "STARTED",
        ContainerEventType::ContainerStoppedEvent => "STOPPED",
        ContainerEventType::ContainerDeletedEvent => "DELETED",
    }
}

//! Causes of inspections, with the priority of each.

use std::fmt;

use rubelet_cri::v1::ContainerEventType;

use super::queue::Priority;

/// The first cause of an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InspectionCause {
    /// An event of the runtime.
    Event(ContainerEventType),
    /// A step of this agent ended.
    Step,
    /// A pod's task requested a newer observation.
    Requested,
    /// The kernel reports that the process of a container is gone.
    Kernel,
    /// A relist differed from the record.
    Relist,
    /// A retry after a failed inspection, or a check of a state that changes without an event.
    Recheck,
}

impl InspectionCause {
    /// One word for metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Event(_) => "event",
            Self::Step => "step",
            Self::Requested => "demand",
            Self::Kernel => "kernel",
            Self::Relist => "relist",
            Self::Recheck => "recheck",
        }
    }

    /// The priority of the inspection.
    pub(super) fn priority(self) -> Priority {
        match self {
            Self::Requested => Priority::Waiting,
            Self::Event(ContainerEventType::ContainerStoppedEvent) => Priority::Stopped,
            Self::Kernel => Priority::Stopped,
            Self::Event(_) | Self::Step => Priority::Change,
            Self::Relist | Self::Recheck => Priority::Reconcile,
        }
    }

    /// The reported one of two causes of an inspection: an event if there is one, else the first.
    pub(super) fn reported(self, later: Self) -> Self {
        match (self, later) {
            (Self::Event(_), _) => self,
            (_, Self::Event(_)) => later,
            _ => self,
        }
    }
}

impl fmt::Display for InspectionCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(kind) => write!(f, "event {}", event_name(*kind)),
            other => f.write_str(other.as_str()),
        }
    }
}

/// The type of an event as users of the runtime know it, such as `STOPPED`.
#[must_use]
pub(crate) fn event_name(kind: ContainerEventType) -> &'static str {
    match kind {
        ContainerEventType::ContainerCreatedEvent => "CREATED",
        ContainerEventType::ContainerStartedEvent => "STARTED",
        ContainerEventType::ContainerStoppedEvent => "STOPPED",
        ContainerEventType::ContainerDeletedEvent => "DELETED",
    }
}

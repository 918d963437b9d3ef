//! The events for a change of the status, beside those that steps raise.

use rubelet_api::status::{ContainerState, PodStatus};
use rubelet_base::event_reason;

use crate::image::IMAGE_PULL_BACK_OFF;

/// An event to raise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusEvent {
    /// The container it is about; `None` for the pod.
    pub container: Option<Box<str>>,
    /// True for the type `Warning`.
    pub warning: bool,
    /// `reason`.
    pub reason: &'static str,
    /// `message`.
    pub message: String,
}

/// Events for back-offs that began between two statuses, and for an exceeded deadline of the pod.
#[must_use]
pub fn events(
    pod: &rubelet_api::pod::Pod,
    old: Option<&PodStatus>,
    new: &PodStatus,
) -> Vec<StatusEvent> {
    let mut events = Vec::new();
    let before = |name: &str| {
        old.into_iter()
            .flat_map(|status| status.init_containers.iter().chain(&status.containers))
            .find(|status| *status.name == *name)
            .map(|status| &status.state)
    };
    for status in new.init_containers.iter().chain(&new.containers) {
        let ContainerState::Waiting { reason, message } = &status.state else {
            continue;
        };
        let known = matches!(
            before(&status.name),
            Some(ContainerState::Waiting { reason: old, .. }) if old == reason
        );
        if known {
            continue;
        }
        // `Normal` for a pull back-off: the failed pull itself has raised a warning.
        let (warning, text) = match &**reason {
            "CrashLoopBackOff" => (
                true,
                format!(
                    "Back-off restarting failed container {} in pod {}_{}({})",
                    status.name, pod.name.name, pod.name.namespace, pod.uid
                ),
            ),
            IMAGE_PULL_BACK_OFF => (
                false,
                message
                    .split_once(": ")
                    .map_or_else(|| message.to_string(), |(first, _)| first.to_owned()),
            ),
            _ => continue,
        };
        let container = Some(status.name.clone());
        events.push(StatusEvent {
            container: container.clone(),
            warning,
            reason: event_reason::BACK_OFF,
            message: text,
        });
        if **reason == *IMAGE_PULL_BACK_OFF {
            events.push(StatusEvent {
                container,
                warning: true,
                reason: event_reason::FAILED,
                message: format!("Error: {reason}"),
            });
        }
    }
    if &*new.reason == "DeadlineExceeded" && old.is_none_or(|old| old.reason != new.reason) {
        events.push(StatusEvent {
            container: None,
            warning: false,
            reason: event_reason::DEADLINE_EXCEEDED,
            message: new.message.to_string(),
        });
    }
    events
}

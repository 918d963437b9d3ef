//! Events of a runtime, reduced to the reliable parts.

use std::pin::Pin;

use futures_core::Stream;

use crate::{CriResult, v1};

/// A hint that something happened to a container or a sandbox.
///
/// The protocol's message also contains statuses. They are omitted on purpose: runtimes read them,
/// stamp the event and queue it in three unordered steps, so that a later event may contain an
/// older state. The receiver of a hint must query the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerEvent {
    /// Identifier of the container, or of the sandbox where `container` is `sandbox`.
    pub container: String,
    /// The reported type of event.
    pub kind: v1::ContainerEventType,
    /// When, by the runtime's wall clock, in nanoseconds since 1970.
    pub created_at: i64,
    /// Identifier of the sandbox; containerd omits it if the sandbox is gone.
    pub sandbox: Option<String>,
    /// UID of the pod, from the sandbox's metadata; missing if `sandbox` is.
    pub pod_uid: Option<String>,
    /// Position among all events of a runtime in this process; a skipped number was an event of the
    /// same object as a later one. The protocol has no field for it.
    pub sequence: Option<u64>,
}

impl ContainerEvent {
    /// True if this is about the sandbox itself. An event without a sandbox may be either.
    #[must_use]
    pub fn is_sandbox(&self) -> bool {
        self.sandbox.as_deref() == Some(&*self.container)
    }
}

/// Events in order of arrival. The first error is the last item, and the end of the stream means
/// that the runtime closed it.
pub type EventStream = Pin<Box<dyn Stream<Item = CriResult<ContainerEvent>> + Send>>;

impl From<v1::ContainerEventResponse> for ContainerEvent {
    fn from(message: v1::ContainerEventResponse) -> Self {
        let kind = message.container_event_type();
        let sandbox = message.pod_sandbox_status;
        let uid = sandbox.as_ref().and_then(|status| status.metadata.as_ref());
        Self {
            container: message.container_id,
            kind,
            created_at: message.created_at,
            pod_uid: uid.map(|metadata| metadata.uid.clone()),
            sandbox: sandbox.map(|status| status.id),
            sequence: None,
        }
    }
}

impl From<ContainerEvent> for v1::ContainerEventResponse {
    /// The sandbox's status only has its identifier and the pod's UID.
    fn from(event: ContainerEvent) -> Self {
        let status = |id| v1::PodSandboxStatus {
            id,
            metadata: event.pod_uid.map(|uid| v1::PodSandboxMetadata {
                uid,
                ..Default::default()
            }),
            ..Default::default()
        };
        Self {
            container_id: event.container,
            container_event_type: event.kind.into(),
            created_at: event.created_at,
            pod_sandbox_status: event.sandbox.map(status),
            containers_statuses: Vec::new(),
        }
    }
}

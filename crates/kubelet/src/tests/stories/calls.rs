//! Formats calls to the runtime for the log of a story.

use std::any::Any;

use rubelet_cri::v1;

use super::{timeline::Timeline, words::length};

/// A call in the log of a story.
pub(super) struct LoggedCall {
    /// UID of the pod that it concerns.
    pub(super) uid: Option<String>,
    /// `None` if the call changes nothing or is a probe.
    pub(super) text: Option<String>,
}

/// Formats a call with its pod and its arguments.
pub(super) fn describe(call: &str, request: &dyn Any, timeline: &Timeline) -> LoggedCall {
    let (id, text) = if let Some(request) = request.downcast_ref::<v1::RunPodSandboxRequest>() {
        let config = request.config.as_ref();
        let metadata = config.and_then(|config| config.metadata.clone());
        let metadata = metadata.unwrap_or_default();
        return LoggedCall {
            uid: Some(metadata.uid),
            text: Some(format!("{call} {}", metadata.attempt)),
        };
    } else if let Some(request) = request.downcast_ref::<v1::CreateContainerRequest>() {
        let config = request.config.as_ref();
        let metadata = config.and_then(|config| config.metadata.clone());
        let v1::ContainerMetadata { name, attempt } = metadata.unwrap_or_default();
        (&request.pod_sandbox_id, format!("{call} {name}#{attempt}"))
    } else if let Some(request) = request.downcast_ref::<v1::StopContainerRequest>() {
        let seconds = u64::try_from(request.timeout).unwrap_or_default();
        let grace = length(std::time::Duration::from_secs(seconds));
        let name = timeline.name_of(&request.container_id);
        (
            &request.container_id,
            format!("{call} {name}, grace {grace}"),
        )
    } else if let Some(request) = request.downcast_ref::<v1::ExecSyncRequest>() {
        let id = &request.container_id;
        if timeline.is_probe(id, &request.cmd) {
            return LoggedCall {
                uid: None,
                text: None,
            };
        }
        let command = request.cmd.join(" ");
        (id, format!("{call} {}, {command}", timeline.name_of(id)))
    } else if let Some(id) = simple(request) {
        (id, format!("{call} {}", timeline.name_of(id)))
    } else {
        return LoggedCall {
            uid: None,
            text: None,
        };
    };
    LoggedCall {
        uid: timeline.owner_of(id),
        text: Some(text),
    }
}

/// The ID in a request that contains nothing else.
fn simple(request: &dyn Any) -> Option<&String> {
    macro_rules! first {
        ($($request:ident $field:ident,)*) => {
            None$(.or_else(|| {
                let request = request.downcast_ref::<v1::$request>()?;
                Some(&request.$field)
            }))*
        };
    }
    first! {
        StartContainerRequest container_id,
        RemoveContainerRequest container_id,
        StopPodSandboxRequest pod_sandbox_id,
        RemovePodSandboxRequest pod_sandbox_id,
    }
}

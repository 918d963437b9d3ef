//! Subjects of calls and messages: identifiers, and the pod that they belong to.

use std::collections::{BTreeMap, HashMap, VecDeque};

use prost::Message;
use rubelet_cri::v1;

/// The label of a pod's UID on its sandboxes and containers.
const UID_LABEL: &str = "io.kubernetes.pod.uid";
const NAME_LABEL: &str = "io.kubernetes.pod.name";
const NAMESPACE_LABEL: &str = "io.kubernetes.pod.namespace";
/// Maximum number of identifiers whose pods are remembered; the oldest are dropped first.
const MAX_KNOWN: usize = 20_000;

/// The properties that rules match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Identifiers of containers and sandboxes.
    pub(crate) ids: Vec<String>,
    /// UID, name and `namespace/name` of the pod.
    pub(crate) pods: Vec<String>,
    /// Kind of an event.
    pub(crate) event: Option<v1::ContainerEventType>,
}

impl Subject {
    /// For the log: the event, the identifier and the pod's name.
    pub(crate) fn shown(&self) -> String {
        let event = self.event.map(|event| {
            let name = event.as_str_name();
            let name = name.strip_prefix("CONTAINER_").unwrap_or(name);
            name.strip_suffix("_EVENT").unwrap_or(name).to_owned()
        });
        let id = self.ids.first().map(|id| format!("id={id}"));
        let pod = self.pods.last().map(|pod| format!("pod={pod}"));
        let parts: Vec<_> = [event, id, pod].into_iter().flatten().collect();
        parts.join(" ")
    }
}

/// The pod of each identifier, learned from calls.
#[derive(Debug, Default)]
pub(crate) struct KnownPods {
    pods: HashMap<String, Vec<String>>,
    order: VecDeque<String>,
}

impl KnownPods {
    fn add(&mut self, id: &str, pod: Vec<String>) {
        if id.is_empty() || pod.is_empty() || self.pods.insert(id.to_owned(), pod).is_some() {
            return;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > MAX_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.pods.remove(&oldest);
        }
    }

    fn pod(&self, id: &str) -> Vec<String> {
        self.pods.get(id).cloned().unwrap_or_default()
    }

    fn by_id(&self, id: String) -> Subject {
        Subject {
            pods: self.pod(&id),
            ids: vec![id],
            event: None,
        }
    }

    /// Subject of a request of the RPC `name`.
    pub(crate) fn of_request(&self, name: &str, request: &[u8]) -> Subject {
        macro_rules! id {
            ($request:ident $field:ident) => {
                v1::$request::decode(request)
                    .map(|request| self.by_id(request.$field))
                    .unwrap_or_default()
            };
        }
        match name {
            "RunPodSandbox" => v1::RunPodSandboxRequest::decode(request)
                .map(|request| Subject {
                    pods: of_config(request.config.as_ref()),
                    ..Subject::default()
                })
                .unwrap_or_default(),
            "CreateContainer" => v1::CreateContainerRequest::decode(request)
                .map(|request| Subject {
                    pods: of_config(request.sandbox_config.as_ref()),
                    ids: vec![request.pod_sandbox_id],
                    event: None,
                })
                .unwrap_or_default(),
            "ListContainers" | "StreamContainers" => v1::ListContainersRequest::decode(request)
                .map(|request| request.filter.unwrap_or_default())
                .map(|filter| {
                    self.of_filter([filter.id, filter.pod_sandbox_id], &filter.label_selector)
                })
                .unwrap_or_default(),
            "ListPodSandbox" | "StreamPodSandboxes" => v1::ListPodSandboxRequest::decode(request)
                .map(|request| request.filter.unwrap_or_default())
                .map(|filter| self.of_filter([filter.id, String::new()], &filter.label_selector))
                .unwrap_or_default(),
            "StopPodSandbox" => id!(StopPodSandboxRequest pod_sandbox_id),
            "RemovePodSandbox" => id!(RemovePodSandboxRequest pod_sandbox_id),
            "PodSandboxStatus" => id!(PodSandboxStatusRequest pod_sandbox_id),
            "PodSandboxStats" => id!(PodSandboxStatsRequest pod_sandbox_id),
            "UpdatePodSandboxResources" => id!(UpdatePodSandboxResourcesRequest pod_sandbox_id),
            "PortForward" => id!(PortForwardRequest pod_sandbox_id),
            "StartContainer" => id!(StartContainerRequest container_id),
            "StopContainer" => id!(StopContainerRequest container_id),
            "RemoveContainer" => id!(RemoveContainerRequest container_id),
            "ContainerStatus" => id!(ContainerStatusRequest container_id),
            "UpdateContainerResources" => id!(UpdateContainerResourcesRequest container_id),
            "ReopenContainerLog" => id!(ReopenContainerLogRequest container_id),
            "ExecSync" => id!(ExecSyncRequest container_id),
            "Exec" => id!(ExecRequest container_id),
            "Attach" => id!(AttachRequest container_id),
            "ContainerStats" => id!(ContainerStatsRequest container_id),
            "CheckpointContainer" => id!(CheckpointContainerRequest container_id),
            _ => Subject::default(),
        }
    }

    fn of_filter(&self, ids: [String; 2], labels: &BTreeMap<String, String>) -> Subject {
        let ids: Vec<_> = ids.into_iter().filter(|id| !id.is_empty()).collect();
        let mut pods = of_labels(labels);
        pods.extend(ids.iter().flat_map(|id| self.pod(id)));
        Subject {
            ids,
            pods,
            event: None,
        }
    }

    /// Subject of a message of the event stream.
    pub(crate) fn of_event(&self, message: &[u8]) -> Subject {
        let Ok(event) = v1::ContainerEventResponse::decode(message) else {
            return Subject::default();
        };
        let kind = event.container_event_type();
        let mut pods = self.pod(&event.container_id);
        let mut ids = vec![event.container_id];
        if let Some(sandbox) = event.pod_sandbox_status {
            pods.extend(of_metadata(sandbox.metadata.as_ref()));
            ids.push(sandbox.id);
        }
        Subject {
            ids,
            pods,
            event: Some(kind),
        }
    }

    pub(crate) fn of_sandbox(sandbox: &v1::PodSandbox) -> Subject {
        Subject {
            ids: vec![sandbox.id.clone()],
            pods: of_metadata(sandbox.metadata.as_ref()),
            event: None,
        }
    }

    pub(crate) fn of_container(container: &v1::Container) -> Subject {
        Subject {
            ids: vec![container.id.clone(), container.pod_sandbox_id.clone()],
            pods: of_labels(&container.labels),
            event: None,
        }
    }

    /// Learns from the response to a creation.
    pub(crate) fn learn_created(&mut self, name: &str, subject: &Subject, answer: &[u8]) {
        let id = match name {
            "RunPodSandbox" => {
                v1::RunPodSandboxResponse::decode(answer).map(|answer| answer.pod_sandbox_id)
            }
            "CreateContainer" => {
                v1::CreateContainerResponse::decode(answer).map(|answer| answer.container_id)
            }
            _ => return,
        };
        self.add(&id.unwrap_or_default(), subject.pods.clone());
    }

    /// Learns from a list or a chunk of one.
    pub(crate) fn learn_list(&mut self, name: &str, answer: &[u8]) {
        // A chunk has the list in the same field as a whole list.
        match name {
            "ListPodSandbox" | "StreamPodSandboxes" => {
                let list = v1::ListPodSandboxResponse::decode(answer).unwrap_or_default();
                for item in &list.items {
                    self.add(&item.id, of_metadata(item.metadata.as_ref()));
                }
            }
            "ListContainers" | "StreamContainers" => {
                let list = v1::ListContainersResponse::decode(answer).unwrap_or_default();
                for item in &list.containers {
                    self.add(&item.id, of_labels(&item.labels));
                }
            }
            _ => {}
        }
    }
}

fn of_config(config: Option<&v1::PodSandboxConfig>) -> Vec<String> {
    of_metadata(config.and_then(|config| config.metadata.as_ref()))
}

fn of_metadata(metadata: Option<&v1::PodSandboxMetadata>) -> Vec<String> {
    let Some(v1::PodSandboxMetadata {
        name,
        uid,
        namespace,
        ..
    }) = metadata
    else {
        return Vec::new();
    };
    // Events of some runtimes have only the UID.
    if name.is_empty() {
        return vec![uid.clone()];
    }
    vec![uid.clone(), name.clone(), format!("{namespace}/{name}")]
}

fn of_labels(labels: &BTreeMap<String, String>) -> Vec<String> {
    let label = |key| labels.get(key).cloned();
    let name = label(NAME_LABEL);
    let full = label(NAMESPACE_LABEL)
        .zip(name.clone())
        .map(|(namespace, name)| format!("{namespace}/{name}"));
    [label(UID_LABEL), name, full]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests;

//! The subject of each request.

use rubelet_cri::v1;

use crate::{Sim, Subject, state::SimState};

/// A request that has a subject.
pub(super) trait HasSubject {
    /// The subject, as far as the runtime knows it when the call arrives.
    fn subject(&self, state: &SimState) -> Subject;
}

impl Sim {
    pub(super) fn subject_of(&self, request: &impl HasSubject) -> Subject {
        self.look(|state| request.subject(state))
    }
}

fn sandbox(state: &SimState, id: &str) -> Subject {
    let sandbox = state.sandboxes.get(id);
    Subject {
        pod_uid: sandbox.map(|sandbox| sandbox.metadata.uid.clone()),
        ..Subject::id(id)
    }
}

fn container(state: &SimState, id: &str) -> Subject {
    match state.containers.get(id) {
        None => Subject::id(id),
        Some(container) => Subject {
            id: Some(id.to_owned()),
            ..Subject::container(&container.instance.pod_uid, &container.instance.name)
        },
    }
}

fn image(spec: Option<&v1::ImageSpec>) -> Subject {
    spec.map_or_else(Subject::any, |spec| Subject::image(&spec.image))
}

impl HasSubject for v1::RunPodSandboxRequest {
    fn subject(&self, _: &SimState) -> Subject {
        let metadata = self
            .config
            .as_ref()
            .and_then(|config| config.metadata.as_ref());
        metadata.map_or_else(Subject::any, |metadata| Subject::pod(&metadata.uid))
    }
}

impl HasSubject for v1::CreateContainerRequest {
    fn subject(&self, state: &SimState) -> Subject {
        let config = self.config.as_ref();
        let metadata = config.and_then(|config| config.metadata.as_ref());
        Subject {
            container: metadata.map(|metadata| metadata.name.clone()),
            image: config.and_then(|config| Some(config.image.as_ref()?.image.clone())),
            id: None,
            ..sandbox(state, &self.pod_sandbox_id)
        }
    }
}

macro_rules! has_subject {
    ($($of:ident by $field:ident: $($request:ident)*;)*) => {
        $($(impl HasSubject for v1::$request {
            fn subject(&self, state: &SimState) -> Subject {
                $of(state, &self.$field)
            }
        })*)*
    };
}

has_subject! {
    sandbox by pod_sandbox_id:
        StopPodSandboxRequest RemovePodSandboxRequest PodSandboxStatusRequest;
    container by container_id:
        StartContainerRequest StopContainerRequest RemoveContainerRequest ContainerStatusRequest
        UpdateContainerResourcesRequest ReopenContainerLogRequest ExecSyncRequest
        ContainerStatsRequest;
}

macro_rules! about_images {
    ($($request:ident)*) => {
        $(impl HasSubject for v1::$request {
            fn subject(&self, _: &SimState) -> Subject {
                image(self.image.as_ref())
            }
        })*
    };
}

about_images! { ImageStatusRequest PullImageRequest RemoveImageRequest }

/// Requests about the runtime as a whole, or lists of everything.
macro_rules! about_all {
    ($($request:ident)*) => {
        $(impl HasSubject for v1::$request {
            fn subject(&self, _: &SimState) -> Subject {
                Subject::any()
            }
        })*
    };
}

about_all! {
    VersionRequest StatusRequest RuntimeConfigRequest UpdateRuntimeConfigRequest
    ListPodSandboxRequest ListContainersRequest ListContainerStatsRequest
    ListImagesRequest ImageFsInfoRequest
}

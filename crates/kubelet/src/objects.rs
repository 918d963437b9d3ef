//! What pods draw from the API server, as this crate sees it: config maps, secrets, tokens, the
//! variables of services, credentials of image pulls and runtime classes. A node without an API
//! server has [`NoObjects`]; tests have their own.

use std::sync::Arc;

use async_trait::async_trait;
use rubelet_api::{container::Container, objects::PodObjects, pod::Pod, volume::VolumeSource};
use rubelet_base::PodUid;
use tokio::sync::watch;

use crate::{
    keyring::PullLogin,
    pod_host::{HostError, Note},
};

/// Reason of the event for a volume that can't be filled.
pub const FAILED_MOUNT: &str = "FailedMount";
/// Waiting reason of a container whose configuration can't be completed.
pub const CONFIG_ERROR: &str = "CreateContainerConfigError";
/// Reason of the event for a sandbox that can't be made.
pub const FAILED_SANDBOX: &str = "FailedCreatePodSandBox";

/// The message of that event.
pub(crate) fn failed_sandbox(why: &str) -> String {
    format!("Failed to create pod sandbox: {why}")
}

/// What the objects are read for. A pod reads only what it needs at the time, so that one thing
/// that is missing holds up nothing else.
#[derive(Debug, Clone, Copy)]
pub enum Draw<'a> {
    /// The files of all its volumes.
    Volumes,
    /// The environment of this container.
    Environment(&'a Container),
}

/// Reads what pods draw from the API server.
#[async_trait]
pub trait ObjectSource: Send + Sync + 'static {
    /// The pod is worked on from now on, or was edited: what it draws is kept at hand. Never
    /// blocks, and may be repeated.
    fn track(&self, pod: &Arc<Pod>);

    /// The pod needs nothing any more. Safe to repeat.
    fn forget(&self, uid: &PodUid);

    /// What the pod draws, as it is now. An object that does not exist is absent; whoever needs it
    /// says so.
    ///
    /// # Errors
    /// It is not known yet whether an object exists, or there is no token; with the reason that
    /// fits the use, and upstream's message.
    async fn objects(&self, pod: &Arc<Pod>, draw: Draw<'_>) -> Result<PodObjects, HostError>;

    /// Credentials to pull an image with, in the order in which they are to be tried, and what an
    /// operator should know of those that can't be had.
    async fn pull_credentials(&self, pod: &Arc<Pod>, image: &str) -> (Vec<PullLogin>, Vec<Note>);

    /// The handler of a runtime class, by which the runtime knows it.
    ///
    /// # Errors
    /// There is no such class, or it is not known yet whether there is.
    async fn runtime_handler(&self, class: &str) -> Result<String, HostError>;

    /// Counts the changes of what a tracked pod draws: its volumes are then to be written anew.
    fn changes(&self, uid: &PodUid) -> watch::Receiver<u64>;

    /// What of a pod's objects is not confirmed: the API server could not be asked, and what it
    /// said at an earlier time is used. In words such as `secret "login"`; empty if all is well.
    fn unconfirmed(&self, _uid: &PodUid) -> Vec<String> {
        Vec::new()
    }
}

/// A node without an API server: there are no objects.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObjects;

#[async_trait]
impl ObjectSource for NoObjects {
    fn track(&self, _: &Arc<Pod>) {}

    fn forget(&self, _: &PodUid) {}

    async fn objects(&self, _: &Arc<Pod>, _: Draw<'_>) -> Result<PodObjects, HostError> {
        Ok(PodObjects::default())
    }

    async fn pull_credentials(&self, _: &Arc<Pod>, _: &str) -> (Vec<PullLogin>, Vec<Note>) {
        (Vec::new(), Vec::new())
    }

    async fn runtime_handler(&self, class: &str) -> Result<String, HostError> {
        Err(HostError {
            reason: FAILED_SANDBOX,
            message: format!(
                "failed to lookup RuntimeClass {class}: this node has no API server to ask"
            ),
        })
    }

    fn changes(&self, _: &PodUid) -> watch::Receiver<u64> {
        never()
    }
}

/// Follows something that does not change.
#[must_use]
pub fn never() -> watch::Receiver<u64> {
    watch::channel(0).1
}

/// Whether a volume of the pod holds files that change while it runs: those made from objects, and
/// those made from the pod's own labels and annotations.
#[must_use]
pub fn draws_volumes(pod: &Pod) -> bool {
    pod.spec.volumes.iter().any(|volume| match &volume.source {
        VolumeSource::ConfigMap(_)
        | VolumeSource::Secret(_)
        | VolumeSource::DownwardApi { .. }
        | VolumeSource::Projected { .. } => true,
        VolumeSource::EmptyDir { .. }
        | VolumeSource::HostPath { .. }
        | VolumeSource::Image { .. } => false,
    })
}

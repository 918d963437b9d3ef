//! Objects of the API server that pods use: config maps, secrets, tokens, service variables, pull
//! credentials and runtime classes. A node without an API server uses [`NoObjects`]; tests have
//! their own implementations.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use rubelet_api::{
    container::Container,
    objects::{PodObjects, Token},
    pod::Pod,
};
use rubelet_base::{PodUid, event_reason};
use tokio::sync::watch;

use crate::{
    host_error::{HostError, HostWarning},
    keyring::PullLogin,
};

/// Waiting reason of a container whose configuration can't be generated.
pub const CONFIG_ERROR: &str = "CreateContainerConfigError";
/// The use of the objects. A pod reads only the objects that it needs at the time, so that a
/// missing one does not delay other uses.
#[derive(Debug, Clone, Copy)]
pub enum ObjectRefs<'a> {
    /// The files of all its volumes.
    Volumes,
    /// The environment of this container.
    Environment(&'a Container),
}

/// The fields of a ServiceAccount that image pulls need.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceAccount {
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
}

/// A service account or its token is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ServiceAccountError(Box<str>);

impl From<String> for ServiceAccountError {
    fn from(message: String) -> Self {
        Self(message.into())
    }
}

/// Service accounts of pods, and their tokens for use by the node.
#[async_trait]
pub trait ServiceAccounts: Send + Sync {
    /// The pod's service account.
    ///
    /// # Errors
    /// It does not exist, or the API server is not reachable.
    async fn service_account(&self, pod: &Pod) -> Result<ServiceAccount, ServiceAccountError>;

    /// A valid token of the pod's service account for this audience. It is bound to the pod, and to
    /// the service account with this UID: not to a later one of the same name.
    ///
    /// # Errors
    /// The API server issues none.
    async fn service_account_token(
        &self,
        pod: &Pod,
        uid: &str,
        audience: &str,
    ) -> Result<Token, ServiceAccountError>;
}

/// Reads the objects of pods from the API server.
#[async_trait]
pub trait ObjectSource: ServiceAccounts + 'static {
    /// Starts to cache the objects of a new or edited pod. Never blocks, and may be repeated.
    fn track(&self, pod: &Arc<Pod>);

    /// Stops caching the objects of a pod. May be repeated.
    fn forget(&self, uid: &PodUid);

    /// The pod's current objects. An object that does not exist is absent; the caller reports that
    /// if it needs the object.
    ///
    /// # Errors
    /// It is unknown yet whether an object exists, or no token is available; with the reason for
    /// this use and upstream's message.
    async fn objects(&self, pod: &Arc<Pod>, refs: ObjectRefs<'_>) -> Result<PodObjects, HostError>;

    /// Credentials for the pull of an image, in the order in which they must be tried, and warnings
    /// about missing ones.
    async fn pull_credentials(
        &self,
        pod: &Arc<Pod>,
        image: &str,
    ) -> (Vec<PullLogin>, Vec<HostWarning>);

    /// The runtime handler of a runtime class.
    ///
    /// # Errors
    /// The class does not exist, or this is unknown yet.
    async fn runtime_handler(&self, class: &str) -> Result<String, HostError>;

    /// Counts the changes of objects that a tracked pod uses, after which its volumes must be
    /// updated.
    fn changes(&self, uid: &PodUid) -> watch::Receiver<u64>;

    /// The pod's unconfirmed objects, such as `secret "login"`: the API server is unreachable, and
    /// a cached version is used. Empty if all are confirmed.
    fn unconfirmed(&self, _uid: &PodUid) -> Vec<String> {
        Vec::new()
    }
}

/// The source of a node without an API server: no objects exist.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObjects;

/// The error of a node without an API server.
const ALONE: &str = "this node has no API server";

#[async_trait]
impl ServiceAccounts for NoObjects {
    async fn service_account(&self, _: &Pod) -> Result<ServiceAccount, ServiceAccountError> {
        Err(ALONE.to_owned().into())
    }

    async fn service_account_token(
        &self,
        _: &Pod,
        _: &str,
        _: &str,
    ) -> Result<Token, ServiceAccountError> {
        Err(ALONE.to_owned().into())
    }
}

#[async_trait]
impl ObjectSource for NoObjects {
    fn track(&self, _: &Arc<Pod>) {}

    fn forget(&self, _: &PodUid) {}

    async fn objects(&self, _: &Arc<Pod>, _: ObjectRefs<'_>) -> Result<PodObjects, HostError> {
        Ok(PodObjects::default())
    }

    async fn pull_credentials(&self, _: &Arc<Pod>, _: &str) -> (Vec<PullLogin>, Vec<HostWarning>) {
        (Vec::new(), Vec::new())
    }

    async fn runtime_handler(&self, class: &str) -> Result<String, HostError> {
        Err(HostError {
            reason: event_reason::FAILED_SANDBOX,
            message: format!("failed to lookup RuntimeClass {class}: {ALONE}"),
        })
    }

    fn changes(&self, _: &PodUid) -> watch::Receiver<u64> {
        never()
    }
}

/// A receiver that never changes.
#[must_use]
pub fn never() -> watch::Receiver<u64> {
    watch::channel(0).1
}

/// True if the files of a volume may change while the pod runs: those from objects, and those from
/// the pod's labels and annotations.
#[must_use]
pub fn needs_volume_refresh(pod: &Pod) -> bool {
    let mut volumes = pod.spec.volumes.iter();
    volumes.any(|volume| volume.source.files().is_some())
}

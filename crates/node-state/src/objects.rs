//! What pods read from the API server, as a node sees it: config maps, secrets, tokens, the
//! variables of services, credentials of image pulls and runtime classes. A node without an API
//! server has [`NoObjects`]; tests have their own.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use rubelet_api::{
    container::Container,
    objects::{PodObjects, Token},
    pod::Pod,
};
use rubelet_base::PodUid;
use tokio::sync::watch;

use crate::{
    host_error::{HostError, HostWarning},
    keyring::PullLogin,
};

/// Reason of the event for a volume that can't be filled.
pub const FAILED_MOUNT: &str = "FailedMount";
/// Waiting reason of a container whose configuration can't be completed.
pub const CONFIG_ERROR: &str = "CreateContainerConfigError";
/// Reason of the event for a sandbox that can't be made.
pub const FAILED_SANDBOX: &str = "FailedCreatePodSandBox";

/// The message of that event.
#[must_use]
pub fn failed_sandbox(why: &str) -> String {
    format!("Failed to create pod sandbox: {why}")
}

/// What the objects are read for. A pod reads only what it needs at the time, so that one thing
/// that is missing holds up nothing else.
#[derive(Debug, Clone, Copy)]
pub enum ObjectRefs<'a> {
    /// The files of all its volumes.
    Volumes,
    /// The environment of this container.
    Environment(&'a Container),
}

/// A ServiceAccount, as far as image pulls need it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceAccount {
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
}

/// Why a service account, or a token of one, is not available; in the words that the API server or the
/// node has for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ServiceAccountError(Box<str>);

impl From<String> for ServiceAccountError {
    fn from(message: String) -> Self {
        Self(message.into())
    }
}

/// Service accounts of pods, and tokens of them for others than the pods themselves.
#[async_trait]
pub trait ServiceAccounts: Send + Sync {
    /// The service account that the pod names.
    ///
    /// # Errors
    /// It does not exist, or the API server does not answer.
    async fn service_account(&self, pod: &Pod) -> Result<ServiceAccount, ServiceAccountError>;

    /// A token of the pod's service account that is valid now: for this audience, bound to the pod, and to the
    /// service account with this UID and no later one of the same name.
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
    /// The pod has a task from now on, or was edited: keep its objects in memory. Never blocks, and
    /// may be repeated.
    fn track(&self, pod: &Arc<Pod>);

    /// The pod needs nothing any more. Safe to repeat.
    fn forget(&self, uid: &PodUid);

    /// The pod's objects, as they are now. An object that does not exist is absent; the caller that
    /// needs it reports that.
    ///
    /// # Errors
    /// It is not known yet whether an object exists, or there is no token; with the reason for that
    /// use, and upstream's message.
    async fn objects(&self, pod: &Arc<Pod>, refs: ObjectRefs<'_>) -> Result<PodObjects, HostError>;

    /// Credentials to pull an image with, in the order in which they must be tried, and notes for
    /// an operator on missing ones.
    async fn pull_credentials(
        &self,
        pod: &Arc<Pod>,
        image: &str,
    ) -> (Vec<PullLogin>, Vec<HostWarning>);

    /// The handler of a runtime class, by which the runtime knows it.
    ///
    /// # Errors
    /// There is no such class, or it is not known yet whether there is.
    async fn runtime_handler(&self, class: &str) -> Result<String, HostError>;

    /// Counts the changes of the objects that a tracked pod uses: its volumes must then be updated.
    fn changes(&self, uid: &PodUid) -> watch::Receiver<u64>;

    /// The pod's objects that are not confirmed: the API server is unreachable, and an earlier
    /// answer is used. In words such as `secret "login"`; empty if all are confirmed.
    fn unconfirmed(&self, _uid: &PodUid) -> Vec<String> {
        Vec::new()
    }
}

/// A node without an API server: there are no objects.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObjects;

/// Why a node without an API server has no service accounts.
const ALONE: &str = "this node has no API server to ask";

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
            reason: FAILED_SANDBOX,
            message: format!("failed to lookup RuntimeClass {class}: {ALONE}"),
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
pub fn needs_volume_refresh(pod: &Pod) -> bool {
    let mut volumes = pod.spec.volumes.iter();
    volumes.any(|volume| volume.source.files().is_some())
}

//! Errors of objects that a pod uses.

use rubelet_base::ErrorChain;
use rubelet_kube::ApiError;
use rubelet_node_state::objects::ServiceAccountError;

use super::object_key::ObjectKey;

/// Why an object that a pod uses is not available, in the kubelet's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum ObjectReadError {
    /// The pod that uses it is not tracked.
    #[error("object {:?}/{:?} not registered", .0.namespace, .0.name)]
    NotRegistered(ObjectKey),
    /// The watch of this kind has no answer.
    #[error("failed to sync {0} cache: timed out waiting for the condition")]
    NotRead(&'static str),
    /// The API server refused, or can't be reached.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The watch of services has no answer: upstream's message for a pod that waits.
    #[error("services have not yet been read at least once, cannot construct envvars")]
    ServicesNotRead,
    /// The watch of runtime classes has no answer.
    #[error("failed to lookup RuntimeClass {0}: timed out waiting for the condition")]
    RuntimeClassNotRead(String),
    /// There is no runtime class of this name.
    #[error("runtimeclass.node.k8s.io {0:?} not found")]
    RuntimeClassNotFound(String),
    /// No service account can have this name.
    #[error("serviceaccounts {0:?} not found")]
    ServiceAccountNotFound(String),
    /// The API server returned a service account without UID.
    #[error("serviceaccounts {0:?} has no UID")]
    ServiceAccountWithoutUid(String),
    /// A token of a service account that can't exist.
    #[error("failed to fetch token: serviceaccounts {0:?} not found")]
    TokenAccountNotFound(String),
    /// The API server issued no token.
    #[error("failed to fetch token")]
    Token(#[source] ApiError),
    /// A token has expired, and the API server issued no other one.
    #[error("token {token} expired and refresh failed")]
    TokenExpired {
        /// Account, namespace, audience and lifetime.
        token: String,
        /// The error of the API server.
        source: ApiError,
    },
}

impl From<ObjectReadError> for ServiceAccountError {
    fn from(error: ObjectReadError) -> Self {
        ErrorChain(&error).to_string().into()
    }
}

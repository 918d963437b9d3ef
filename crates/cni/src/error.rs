//! The error of the network.

/// Why a pod could not be added to the network or removed from it. The text is one sentence for the
/// pod's events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The request is invalid; retrying does not help.
    #[error("{0}")]
    Refused(String),
    /// The host or a plugin failed; retrying may help.
    #[error("{0}")]
    Failed(String),
    /// The pod's network is damaged.
    #[error("{0}")]
    Broken(String),
}

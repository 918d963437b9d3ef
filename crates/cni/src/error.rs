//! What can go wrong.

/// Why a pod could not be put on the network, or be taken off it. The text is one sentence for the
/// pod's events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The request can't be fulfilled until something about the pod changes.
    #[error("{0}")]
    Refused(String),
    /// The host or a plugin failed; trying again may help.
    #[error("{0}")]
    Failed(String),
    /// The pod isn't on the network as it should be.
    #[error("{0}")]
    Broken(String),
}

//! Whether the machine of the node is being shut down.

/// Whether the machine of the node is being shut down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShutdownState {
    /// It was not asked yet. Pods that an earlier shutdown has ended do not run again before it was.
    #[default]
    Unknown,
    /// It is not, or that can't be known.
    Running,
    /// Pods end, and new ones are rejected.
    ShuttingDown,
}

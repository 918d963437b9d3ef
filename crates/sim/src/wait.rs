//! What a caller waits for.

use std::time::Duration;

/// Result of evaluating a condition.
pub(crate) enum Wait<T> {
    Done(T),
    /// Evaluate again at this time, or when something changes.
    Until(Duration),
    ForChange,
}

impl<T> From<Option<T>> for Wait<T> {
    fn from(done: Option<T>) -> Self {
        done.map_or(Self::ForChange, Self::Done)
    }
}

//! Blocking operations of the network.

use crate::{NetworkError, NetworkFailure};

/// Runs a blocking operation on tokio's blocking threads.
pub(crate) async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, NetworkError> + Send + 'static,
) -> Result<T, NetworkError> {
    tokio::task::spawn_blocking(act)
        .await
        .unwrap_or_else(|error| Err(NetworkFailure::Operation(error).into()))
}

//! Blocking operations on separate threads.

use crate::error::{Result, RuntimeError};

/// Runs a blocking operation on another thread, without the limit of [`Engine::blocking`](crate::engine::Engine::blocking): for work
/// that may hang on something outside of the runtime's control, such as the disk of a volume.
pub(crate) async fn unbounded<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(RuntimeError::failed(
            "an operation of the runtime panicked; this is a bug",
        )),
    }
}

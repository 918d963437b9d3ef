//! The signal by which long-lived responses learn that the server stops.

use tokio::sync::watch;

/// Notifies long-lived responses that the server stops.
#[derive(Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Requested once the value is true, or its sender is gone.
    #[must_use]
    pub const fn new(stopped: watch::Receiver<bool>) -> Self {
        Self(stopped)
    }

    /// Returns once the server stops. Cancel safe.
    pub async fn requested(&mut self) {
        // An error means that the sender is gone, and with it the server.
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}

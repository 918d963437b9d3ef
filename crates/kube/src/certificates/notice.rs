//! The notice to operators about a certificate that is awaited, and the hooks for metrics.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// One line about what is being waited for, for `rubelet status` and `/readyz`; `None` when all is
/// well. Every change is logged too.
#[derive(Clone, Debug)]
pub struct CertificateNotice {
    subject: &'static str,
    line: watch::Sender<Option<String>>,
}

impl CertificateNotice {
    /// An empty notice. `subject` names what it is about in the log.
    #[must_use]
    pub fn new(subject: &'static str) -> Self {
        Self {
            subject,
            line: watch::Sender::new(None),
        }
    }

    /// Follows the line.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Option<String>> {
        self.line.subscribe()
    }

    /// Sets and logs what is awaited.
    pub(super) fn say(&self, line: &str) {
        if self.show(line) {
            tracing::info!("{}: {line}", self.subject);
        }
    }

    /// Sets and logs an error.
    pub(super) fn trouble(&self, line: &str) {
        if self.show(line) {
            tracing::warn!("{}: {line}", self.subject);
        }
    }

    fn show(&self, line: &str) -> bool {
        self.line.send_if_modified(|now| {
            let changed = now.as_deref() != Some(line);
            if changed {
                *now = Some(line.to_owned());
            }
            changed
        })
    }

    pub(super) fn clear(&self) {
        self.line.send_if_modified(|now| now.take().is_some());
    }
}

/// Called when something happens that is counted.
#[derive(Clone)]
pub struct CertificateHooks {
    /// A certificate could not be renewed: `certificate_manager_client_expiration_renew_errors`,
    /// `server_expiration_renew_errors`.
    pub failed: Arc<dyn Fn() + Send + Sync>,
    /// A certificate was replaced; the argument is its age:
    /// `certificate_manager_server_rotation_seconds`.
    pub rotated: Arc<dyn Fn(Duration) + Send + Sync>,
}

impl Default for CertificateHooks {
    fn default() -> Self {
        Self {
            failed: Arc::new(|| {}),
            rotated: Arc::new(|_| {}),
        }
    }
}

impl fmt::Debug for CertificateHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CertificateHooks")
    }
}

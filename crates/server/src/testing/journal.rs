//! An audit log in a private directory, and its events.

use std::{path::PathBuf, sync::Arc, time::Duration};

use rubelet_audit::{AuditLevel, AuditLog, AuditPolicy, Rotation};
use serde_json::Value;
use tempfile::TempDir;

/// An audit log, and the file that it writes.
pub struct Journal {
    /// The log, for a server.
    pub log: Arc<AuditLog>,
    path: PathBuf,
    _directory: TempDir,
}

impl Default for Journal {
    fn default() -> Self {
        Self::new()
    }
}

impl Journal {
    /// A log of all requests.
    #[must_use]
    pub fn new() -> Self {
        Self::with(AuditPolicy::of_level(AuditLevel::Metadata))
    }

    /// A log of the requests that the policy selects.
    #[must_use]
    pub fn with(policy: AuditPolicy) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("audit.log");
        let rotation = Rotation {
            max_bytes: 1 << 20,
            max_backups: 0,
            max_age: Duration::ZERO,
        };
        let log = AuditLog::open(&path, rotation, policy, Arc::new(()));
        let log = log.expect("the directory is ours");
        Self {
            log,
            path,
            _directory: directory,
        }
    }

    /// Closes the log. Its text is plain ASCII, one event on each line.
    pub async fn close(self) -> (String, Vec<Value>) {
        self.log.close().await;
        let text = self.text();
        let plain = |byte: u8| byte == b'\n' || (0x20..0x7f).contains(&byte);
        assert!(text.bytes().all(plain), "{text}");
        let events = text.lines().map(|line| {
            let event: Value = serde_json::from_str(line).expect("a line is JSON");
            assert_eq!(event["kind"], "Event");
            assert_eq!(event["apiVersion"], "audit.k8s.io/v1");
            assert_eq!(event["level"], "Metadata");
            event
        });
        let events = events.collect();
        (text, events)
    }

    /// Waits until that text is in the file.
    pub async fn wait_for(&self, text: &str) {
        loop {
            if self.text().contains(text) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.path).expect("the log has made its file")
    }
}

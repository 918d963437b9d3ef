//! An audit log in a private directory, and its events.

use std::{path::PathBuf, sync::Arc, time::Duration};

use serde_json::Value;
use tempfile::TempDir;

use crate::audit::{AuditLevel, AuditLog, AuditPolicy, Rotation};

pub(crate) struct Journal {
    pub(crate) log: Arc<AuditLog>,
    path: PathBuf,
    _directory: TempDir,
}

impl Journal {
    pub(crate) fn new() -> Self {
        Self::with(AuditPolicy::of_level(AuditLevel::Metadata))
    }

    pub(crate) fn with(policy: AuditPolicy) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let rotation = Rotation {
            max_bytes: 1 << 20,
            max_backups: 0,
            max_age: Duration::ZERO,
        };
        let log = AuditLog::open(&path, rotation, policy, Arc::new(())).unwrap();
        Self {
            log,
            path,
            _directory: directory,
        }
    }

    /// Closes the log. Its text is plain ASCII, one event on each line.
    pub(crate) async fn close(self) -> (String, Vec<Value>) {
        self.log.close().await;
        let text = std::fs::read_to_string(&self.path).unwrap();
        let plain = |byte: u8| byte == b'\n' || (0x20..0x7f).contains(&byte);
        assert!(text.bytes().all(plain), "{text}");
        let events = text.lines().map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            assert_eq!(event["kind"], "Event");
            assert_eq!(event["apiVersion"], "audit.k8s.io/v1");
            assert_eq!(event["level"], "Metadata");
            event
        });
        let events = events.collect();
        (text, events)
    }

    /// Waits until that text is in the file.
    pub(crate) async fn wait_for(&self, text: &str) {
        loop {
            if std::fs::read_to_string(&self.path).unwrap().contains(text) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

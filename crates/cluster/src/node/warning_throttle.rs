//! Limits a warning: logged at once when it is new, and each minute while it stays.

use std::time::Duration;

use tokio::time::Instant;

/// The same warning is not repeated before this time.
const REPEAT: Duration = Duration::from_secs(60);

/// The last warning.
#[derive(Debug, Default)]
pub(super) struct WarningThrottle {
    last: Option<(String, Instant)>,
}

impl WarningThrottle {
    /// Returns true if this warning has to be logged now.
    pub(super) fn is_due(&mut self, text: &str) -> bool {
        let now = Instant::now();
        let due = self
            .last
            .as_ref()
            .is_none_or(|(old, at)| *old != *text || now.duration_since(*at) >= REPEAT);
        if due {
            self.last = Some((text.to_owned(), now));
        }
        due
    }

    /// The problem is gone; the next warning is new.
    pub(super) fn reset(&mut self) {
        self.last = None;
    }
}

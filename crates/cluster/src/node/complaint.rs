//! Says what goes wrong: at once when it is new, and now and then while it stays.

use std::time::Duration;

use tokio::time::Instant;

/// The same complaint is not repeated before this time.
const REPEAT: Duration = Duration::from_secs(60);

/// What was said last.
#[derive(Debug, Default)]
pub(super) struct Complaint {
    last: Option<(String, Instant)>,
}

impl Complaint {
    /// Whether this has to be said now.
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

    /// All is well; the next complaint is new.
    pub(super) fn settle(&mut self) {
        self.last = None;
    }
}

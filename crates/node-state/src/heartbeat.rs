//! Heartbeats of loops.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The interval of the heartbeats of an idle loop.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// The time of a loop's last iteration. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Heartbeat(Arc<Mutex<Instant>>);

impl Heartbeat {
    /// The heartbeat of a loop that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    /// Records an iteration.
    pub fn beat(&self) {
        *self.0.lock() = Instant::now();
    }

    /// The time since the last iteration.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.0.lock().elapsed()
    }
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self::new()
    }
}

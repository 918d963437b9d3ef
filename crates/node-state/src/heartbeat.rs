//! Proof that a loop still goes round.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// How often a loop that has nothing to do shows that it is alive.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// When a loop last went round. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Heartbeat(Arc<Mutex<Instant>>);

impl Heartbeat {
    /// A loop that begins now.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    /// The loop went round.
    pub fn beat(&self) {
        *self.0.lock() = Instant::now();
    }

    /// Time since it last did.
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

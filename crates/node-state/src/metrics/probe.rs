//! Values that are read at each scrape.

use std::fmt;

use parking_lot::Mutex;

/// A source of values that are read at each scrape.
pub(super) struct Probe<T>(Mutex<Option<Box<dyn Fn() -> T + Send + Sync>>>);

impl<T> Probe<T> {
    /// Has no source yet.
    pub(super) fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Sets the source, in place of an earlier one. It must not wait, and should hold no strong reference to the
    /// metrics.
    pub(super) fn set(&self, source: impl Fn() -> T + Send + Sync + 'static) {
        *self.0.lock() = Some(Box::new(source));
    }

    /// What the source says; `None` if there is none.
    pub(super) fn read(&self) -> Option<T> {
        self.0.lock().as_ref().map(|source| source())
    }
}

impl<T> fmt::Debug for Probe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probe")
    }
}

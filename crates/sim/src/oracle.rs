//! The oracle: the record of everything that happened, in order, and queries on it.

mod calls;
mod entry;
mod events;
mod processes;

pub use calls::CallRecord;
pub use entry::{CallOutcome, Entry, EntryKind, Instance};
pub use processes::ExecRecord;

/// The record up to the moment at which it was taken. Displays as one line per entry.
#[derive(Debug, Clone)]
pub struct Oracle {
    entries: Vec<Entry>,
}

impl Oracle {
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        Self { entries }
    }

    /// Everything, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The current end of the record, from which a later query starts.
    #[must_use]
    pub fn mark(&self) -> usize {
        self.entries.len()
    }
}

impl std::fmt::Display for Oracle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.entries
            .iter()
            .try_for_each(|entry| writeln!(f, "{entry}"))
    }
}

//! Questions about events.

use std::time::Duration;

use rubelet_cri::ContainerEvent;

use super::{EntryKind, Oracle};

impl Oracle {
    /// How many streams of events were opened.
    #[must_use]
    pub fn event_streams(&self) -> usize {
        let whats = self.entries().iter().map(|entry| &entry.what);
        whats
            .filter(|what| matches!(what, EntryKind::EventStreamOpened(_)))
            .count()
    }

    /// The events that the runtime emitted, in that order, whoever got them: their number, when, what.
    #[must_use]
    pub fn events_emitted(&self) -> Vec<(u64, Duration, &ContainerEvent)> {
        let emitted = self.entries().iter().filter_map(|entry| match &entry.what {
            EntryKind::EventEmitted(number, event) => Some((*number, entry.at, &**event)),
            _ => None,
        });
        emitted.collect()
    }

    /// The events that readers got, in that order, twice where they came twice: the number they
    /// were emitted with, when, and what they said then.
    #[must_use]
    pub fn events_delivered(&self) -> Vec<(u64, Duration, &ContainerEvent)> {
        let delivered = self.entries().iter().filter_map(|entry| match &entry.what {
            EntryKind::EventDelivered { number, event, .. } => Some((*number, entry.at, &**event)),
            _ => None,
        });
        delivered.collect()
    }
}

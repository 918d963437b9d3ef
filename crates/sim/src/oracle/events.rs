//! Queries on events.

use std::time::Duration;

use rubelet_cri::ContainerEvent;

use super::{EntryKind, Oracle};

impl Oracle {
    /// Number of event streams that were opened.
    #[must_use]
    pub fn event_streams(&self) -> usize {
        let whats = self.entries().iter().map(|entry| &entry.what);
        whats
            .filter(|what| matches!(what, EntryKind::EventStreamOpened(_)))
            .count()
    }

    /// The events that the runtime emitted, in order, whether delivered or not: number, time, event.
    #[must_use]
    pub fn events_emitted(&self) -> Vec<(u64, Duration, &ContainerEvent)> {
        let emitted = self.entries().iter().filter_map(|entry| match &entry.what {
            EntryKind::EventEmitted(number, event) => Some((*number, entry.at, &**event)),
            _ => None,
        });
        emitted.collect()
    }

    /// The events that readers received, in order, duplicates included: number, time, event as
    /// received.
    #[must_use]
    pub fn events_delivered(&self) -> Vec<(u64, Duration, &ContainerEvent)> {
        let delivered = self.entries().iter().filter_map(|entry| match &entry.what {
            EntryKind::EventDelivered { number, event, .. } => Some((*number, entry.at, &**event)),
            _ => None,
        });
        delivered.collect()
    }
}

//! Unacknowledged events, and warnings for operators.

use std::collections::VecDeque;

use crate::protocol::Event;

/// Maximum stored events. Exits of containers are never dropped, and are few: beyond the limit,
/// exits of execs, overruns of attachments and warnings are dropped.
const MOST: usize = 1024;

/// Maximum warnings in the state.
const WARNINGS: usize = 32;

/// The events of a shim.
#[derive(Debug, Default)]
pub(super) struct Events {
    latest: u64,
    unacknowledged: VecDeque<(u64, Event)>,
    warnings: VecDeque<String>,
}

impl Events {
    /// Stores an event; returns its sequence number.
    pub(super) fn push(&mut self, event: Event) -> u64 {
        if let Event::Warning { message } = &event {
            self.keep_warning(message.clone());
        }
        self.latest += 1;
        self.unacknowledged.push_back((self.latest, event));
        if self.unacknowledged.len() > MOST {
            let can_go = |(_, event): &(u64, Event)| {
                matches!(
                    event,
                    Event::ExecExited { .. }
                        | Event::AttachmentOverrun { .. }
                        | Event::Warning { .. }
                )
            };
            if let Some(place) = self.unacknowledged.iter().position(can_go) {
                self.unacknowledged.remove(place);
            }
        }
        self.latest
    }

    /// Stores a warning without an event.
    pub(super) fn keep_warning(&mut self, message: String) {
        if self.warnings.len() == WARNINGS {
            self.warnings.pop_front();
        }
        self.warnings.push_back(message);
    }

    /// Drops all events up to a sequence number.
    pub(super) fn acknowledge(&mut self, upto: u64) {
        self.unacknowledged.retain(|(sequence, _)| *sequence > upto);
        if self.unacknowledged.is_empty() {
            self.unacknowledged = VecDeque::new();
        }
    }

    /// The stored events, the oldest first.
    pub(super) fn unacknowledged(&self) -> impl Iterator<Item = &(u64, Event)> {
        self.unacknowledged.iter()
    }

    /// Sequence number of the latest one.
    pub(super) fn latest(&self) -> u64 {
        self.latest
    }

    /// The warnings, the oldest first.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExitRecord;

    fn exec(number: usize) -> Event {
        Event::ExecExited {
            container: "c".into(),
            exec_id: number.to_string(),
            exit_code: 0,
            signal: None,
            at_ns: 0,
        }
    }

    #[test]
    fn events_stay_until_they_are_acknowledged() {
        let mut events = Events::default();
        for number in 0..3 {
            events.push(exec(number));
        }
        let numbers = |events: &Events| -> Vec<u64> {
            events.unacknowledged().map(|(number, _)| *number).collect()
        };
        assert_eq!(numbers(&events), [1, 2, 3]);
        events.acknowledge(2);
        assert_eq!(numbers(&events), [3]);
        events.acknowledge(1);
        assert_eq!(numbers(&events), [3]);
        events.acknowledge(99);
        assert!(numbers(&events).is_empty());
        assert_eq!(events.push(exec(4)), 4);
    }

    #[test]
    fn container_exits_are_never_dropped() {
        let mut events = Events::default();
        events.push(Event::Exited {
            container: "c".into(),
            exit: ExitRecord::default(),
        });
        for number in 0..3 * MOST {
            events.push(exec(number));
        }
        assert_eq!(events.unacknowledged().count(), MOST);
        let first = events.unacknowledged().next().unwrap();
        assert!(matches!(first.1, Event::Exited { .. }));
    }
}

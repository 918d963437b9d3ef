//! Decides what to send for an event: a new object, a higher count of a sent one, or nothing. Pure.

use std::{collections::HashMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use rubelet_node_state::events::Event;
use tokio::time::Instant;

use super::{
    similar::{EventGroup, SimilarEvents},
    spam::{InvolvedObject, SpamFilter},
    sweep::Sweep,
};

/// Largest number of remembered events; a repeat of a forgotten one becomes a new object.
const REMEMBERED: usize = 4096;
/// An event that did not repeat for this long becomes a new object.
const QUIET: SignedDuration = SignedDuration::from_mins(10);

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OutgoingEvent {
    /// The event.
    pub(super) event: Arc<Event>,
    /// `metadata.name`.
    pub(super) name: Box<str>,
    /// `message`.
    pub(super) message: Box<str>,
    /// `firstTimestamp`.
    pub(super) first: Timestamp,
    /// `count`.
    pub(super) count: u32,
    /// The object was sent before: only what changed is sent.
    pub(super) repeats: bool,
}

/// The event series that were sent.
#[derive(Debug, Default)]
pub(super) struct SentEvents {
    similar: SimilarEvents,
    spam: SpamFilter,
    events: HashMap<Box<str>, SeenEvent>,
    groups: HashMap<EventGroup, CombinedEvent>,
    sweeps: [Sweep; 2],
}

/// An event that was seen.
#[derive(Debug)]
struct SeenEvent {
    /// Occurrences that were taken into account.
    count: u32,
    combined: bool,
    /// The API server has it.
    sent: bool,
    last: Timestamp,
}

/// The event that represents similar ones.
#[derive(Debug)]
struct CombinedEvent {
    name: Box<str>,
    first: Timestamp,
    count: u32,
    sent: bool,
    last: Timestamp,
}

impl SentEvents {
    /// The call for an event; `None` if there is nothing new, or its object caused too many.
    pub(super) fn next(&mut self, event: &Arc<Event>, now: Instant) -> Option<OutgoingEvent> {
        let seen = self.events.get(&event.name).map_or(0, |one| one.count);
        let new = event.count.checked_sub(seen).filter(|new| *new > 0)?;
        let combined = match self.events.get(&event.name) {
            Some(one) => one.combined,
            None => self.similar.combines(event, now),
        };
        let counted = self.events.entry(event.name.clone()).or_insert(SeenEvent {
            count: 0,
            combined,
            sent: false,
            last: event.last,
        });
        // Also for one that is not sent in the end: it is not tried again.
        counted.count = event.count;
        counted.last = event.last;
        let outgoing = if combined {
            let group = self
                .groups
                .entry(EventGroup::of(event))
                .or_insert(CombinedEvent {
                    name: event.name.clone(),
                    first: event.first,
                    count: 0,
                    sent: false,
                    last: event.last,
                });
            group.count = group.count.saturating_add(new);
            group.last = event.last;
            OutgoingEvent {
                event: Arc::clone(event),
                name: group.name.clone(),
                message: format!("(combined from similar events): {}", event.message).into(),
                first: group.first,
                count: group.count,
                repeats: group.sent,
            }
        } else {
            OutgoingEvent {
                event: Arc::clone(event),
                name: event.name.clone(),
                message: event.message.clone(),
                first: event.first,
                count: event.count,
                repeats: counted.sent,
            }
        };
        self.forget(event.last);
        let object = InvolvedObject::of(&event.subject, event.kind);
        self.spam.allows(object, now).then_some(outgoing)
    }

    /// The API server has it.
    pub(super) fn sent(&mut self, outgoing: &OutgoingEvent) {
        let Some(counted) = self.events.get_mut(&outgoing.event.name) else {
            return;
        };
        if !counted.combined {
            counted.sent = true;
        } else if let Some(group) = self.groups.get_mut(&EventGroup::of(&outgoing.event)) {
            group.sent = true;
        }
    }

    /// Forgets what can't come again.
    fn forget(&mut self, now: Timestamp) {
        let [events, groups] = &mut self.sweeps;
        events.run(&mut self.events, REMEMBERED, |one| one.last + QUIET, now);
        groups.run(&mut self.groups, REMEMBERED, |one| one.last + QUIET, now);
    }
}

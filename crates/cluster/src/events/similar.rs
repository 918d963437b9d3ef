//! Events that differ by message only: from the tenth on within ten minutes, one event represents
//! all further ones (client-go: `EventAggregator`). Pure.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use rubelet_node_state::events::Event;
use tokio::time::Instant;

use super::{spam::InvolvedObject, sweep::Sweep};

/// Number of distinct messages of one reason before they are combined.
const MESSAGES: usize = 9;
/// After this time without such an event, the messages of an object are counted from the start.
const QUIET: Duration = Duration::from_secs(600);
/// Largest number of remembered objects and reasons.
const GROUPS: usize = 4096;

/// An object and a reason.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct EventGroup {
    object: InvolvedObject,
    reason: Box<str>,
}

impl EventGroup {
    pub(super) fn of(event: &Event) -> Self {
        Self {
            object: InvolvedObject::of(&event.subject, event.kind),
            reason: event.reason.clone(),
        }
    }
}

/// Messages by object and reason.
#[derive(Debug, Default)]
pub(super) struct SimilarEvents {
    groups: HashMap<EventGroup, GroupMessages>,
    sweep: Sweep,
}

#[derive(Debug)]
struct GroupMessages {
    messages: HashSet<u64>,
    last: Instant,
}

impl SimilarEvents {
    /// True if this event must be counted with others of its group, not by itself.
    pub(super) fn combines(&mut self, event: &Event, now: Instant) -> bool {
        self.sweep
            .run(&mut self.groups, GROUPS, |seen| seen.last + QUIET, now);
        let seen = self
            .groups
            .entry(EventGroup::of(event))
            .or_insert(GroupMessages {
                messages: HashSet::new(),
                last: now,
            });
        if now > seen.last + QUIET {
            seen.messages.clear();
        }
        seen.last = now;
        let mut hasher = DefaultHasher::new();
        event.message.hash(&mut hasher);
        let message = hasher.finish();
        if seen.messages.contains(&message) {
            return false;
        }
        if seen.messages.len() >= MESSAGES {
            return true;
        }
        seen.messages.insert(message);
        false
    }
}

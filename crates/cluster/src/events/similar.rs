//! Events that differ by message only: from the tenth on within ten minutes, one event stands for
//! all further ones (client-go: `EventAggregator`). Pure.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use rubelet_kubelet::events::Event;
use tokio::time::Instant;

use super::{spam::Object, sweep::Sweep};

/// So many messages of one reason are told apart.
const MESSAGES: usize = 9;
/// An object is quiet when it caused no such event for so long.
const QUIET: Duration = Duration::from_secs(600);
/// So many objects and reasons are remembered.
const GROUPS: usize = 4096;

/// An object and a reason.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Group {
    object: Object,
    reason: Box<str>,
}

impl Group {
    pub(super) fn of(event: &Event) -> Self {
        Self {
            object: Object::of(&event.subject, event.kind),
            reason: event.reason.clone(),
        }
    }
}

/// Messages by object and reason.
#[derive(Debug, Default)]
pub(super) struct Similar {
    groups: HashMap<Group, Seen>,
    sweep: Sweep,
}

#[derive(Debug)]
struct Seen {
    messages: HashSet<u64>,
    last: Instant,
}

impl Similar {
    /// True if this event is to be counted with others of its group, not by itself.
    pub(super) fn combines(&mut self, event: &Event, now: Instant) -> bool {
        self.sweep
            .run(&mut self.groups, GROUPS, |seen| seen.last + QUIET, now);
        let seen = self.groups.entry(Group::of(event)).or_insert(Seen {
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

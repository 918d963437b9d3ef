//! Rate limit for the events of one object (client-go: `EventSourceObjectSpamFilter`). Pure.

use std::{collections::HashMap, time::Duration};

use rubelet_node_state::events::{EventType, Subject};
use tokio::time::Instant;

use super::sweep::Sweep;

/// Events in a burst,
const BURST: u32 = 25;
/// and then one in this time.
const EVERY: Duration = Duration::from_secs(300);
/// Maximum number of objects that are remembered.
const OBJECTS: usize = 4096;

/// An object and a kind of event; containers count with their pods.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct InvolvedObject {
    name: Box<str>,
    warning: bool,
}

impl InvolvedObject {
    pub(super) fn of(subject: &Subject, kind: EventType) -> Self {
        let name = match subject {
            Subject::Pod { name, uid, .. } => {
                let uid = uid.as_ref().map_or("", |uid| uid.as_str());
                format!("pod/{name}/{uid}")
            }
            Subject::Manifest(origin) => format!("manifest/{origin}"),
            Subject::Node(name) => format!("node/{name}"),
        };
        Self {
            name: name.into(),
            warning: kind == EventType::Warning,
        }
    }
}

/// Counts events by object.
#[derive(Debug, Default)]
pub(super) struct SpamFilter {
    /// The time at which an object has its full burst again.
    whole_at: HashMap<InvolvedObject, Instant>,
    sweep: Sweep,
}

impl SpamFilter {
    /// True if the object may cause one more event now.
    pub(super) fn allows(&mut self, object: InvolvedObject, now: Instant) -> bool {
        self.sweep
            .run(&mut self.whole_at, OBJECTS, |whole_at| *whole_at, now);
        let whole_at = self.whole_at.entry(object).or_insert(now);
        let next = (*whole_at).max(now) + EVERY;
        let allowed = next <= now + EVERY * BURST;
        if allowed {
            *whole_at = next;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_object_may_cause_25_events_at_once_and_then_one_in_5_minutes() {
        let mut filter = SpamFilter::default();
        let object = |name: &str, kind| InvolvedObject::of(&Subject::Node(name.into()), kind);
        let mut now = Instant::now();
        let mut allowed = |name, kind, now, tries: usize| {
            let one = |_: &usize| filter.allows(object(name, kind), now);
            (0..tries).filter(one).count()
        };
        assert_eq!(allowed("a", EventType::Warning, now, 100), 25);
        assert_eq!(allowed("b", EventType::Warning, now, 100), 25);
        assert_eq!(allowed("a", EventType::Normal, now, 1), 1);
        now += Duration::from_secs(299);
        assert_eq!(allowed("a", EventType::Warning, now, 10), 0);
        now += Duration::from_secs(1);
        assert_eq!(allowed("a", EventType::Warning, now, 10), 1);
        now += Duration::from_secs(1500);
        assert_eq!(allowed("a", EventType::Warning, now, 10), 5);
        now += Duration::from_secs(90_000);
        assert_eq!(allowed("a", EventType::Warning, now, 100), 25);
    }
}

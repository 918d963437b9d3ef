//! Events: what happened to pods, manifests and the node, kept in a bounded record.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use rubelet_api::pod::Pod;
use rubelet_base::{PodName, PodUid};
use serde_json::{Value, json};
use tracing::info;

use crate::{board::Board, clock::Clock};

/// So many events are kept.
const KEEP: usize = 1000;
/// Equal events within this time are counted as one.
const AGGREGATE: Duration = Duration::from_secs(600);

/// How bad an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// Part of normal work.
    Normal,
    /// An operator may have to act.
    Warning,
}

impl EventType {
    /// The value of `type`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A pod, or one of its containers by field path such as `spec.containers{web}`.
    Pod {
        /// Its name.
        name: PodName,
        /// Its UID; `None` for a pod that was never accepted.
        uid: Option<PodUid>,
        /// The container's field path; empty for the pod itself.
        field_path: Box<str>,
    },
    /// A manifest file or URL.
    Manifest(Box<str>),
    /// The node.
    Node(Box<str>),
}

impl Subject {
    /// The namespace of its events: that of the pod, `default` where the object has none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        match self {
            Self::Pod { name, .. } => &name.namespace,
            Self::Manifest(_) | Self::Node(_) => "default",
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod {
                name, field_path, ..
            } if field_path.is_empty() => write!(f, "pod {name}"),
            Self::Pod {
                name, field_path, ..
            } => write!(f, "pod {name} {field_path}"),
            Self::Manifest(name) => write!(f, "manifest {name}"),
            Self::Node(name) => write!(f, "node {name}"),
        }
    }
}

/// `involvedObject` of an event about a pod.
#[must_use]
pub fn pod_reference(name: &PodName, uid: Option<&PodUid>, field_path: &str) -> Value {
    let mut involved = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": *name.namespace,
        "name": *name.name,
    });
    if let Some(uid) = uid {
        involved["uid"] = uid.as_str().into();
    }
    if !field_path.is_empty() {
        involved["fieldPath"] = field_path.into();
    }
    involved
}

/// One event, or several equal ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Unique on this node.
    pub name: Box<str>,
    /// What it is about.
    pub subject: Subject,
    /// Normal or Warning.
    pub kind: EventType,
    /// Kind of event in one word.
    pub reason: Box<str>,
    /// What happened.
    pub message: Box<str>,
    /// When it first happened.
    pub first: Timestamp,
    /// When it last happened.
    pub last: Timestamp,
    /// How often it happened.
    pub count: u32,
}

/// Takes events and keeps the newest. Cheap to clone; never blocks on readers.
#[derive(Debug, Clone)]
pub struct Recorder {
    board: Arc<Board<Box<str>, Event>>,
    order: Arc<Mutex<Order>>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct Order {
    /// By their last occurrence, oldest first.
    events: VecDeque<Event>,
    /// The number in the name that was given last.
    number: u64,
}

impl Order {
    /// A name as upstream gives them, by the time in nanoseconds, and of two events of one instant
    /// the second a little later.
    fn fresh_name(&mut self, subject: &Subject, now: Timestamp) -> Box<str> {
        let nanos = u64::try_from(now.as_nanosecond()).unwrap_or_default();
        self.number = nanos.max(self.number + 1);
        let base = match subject {
            Subject::Pod { name, .. } => &*name.name,
            Subject::Manifest(_) => "manifest",
            Subject::Node(name) => name,
        };
        format!("{base}.{:016x}", self.number).into()
    }
}

impl Recorder {
    /// A recorder without events.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            board: Arc::new(Board::new()),
            order: Arc::default(),
            clock,
        }
    }

    /// Where events can be read.
    #[must_use]
    pub fn board(&self) -> &Arc<Board<Box<str>, Event>> {
        &self.board
    }

    /// An event about a pod, or one of its containers.
    pub fn pod(
        &self,
        pod: &Pod,
        container: Option<&str>,
        kind: EventType,
        reason: &str,
        message: &str,
    ) {
        let field_path = container.map(|name| {
            let mut init = pod.spec.init_containers.iter();
            let mut ephemeral = pod.spec.ephemeral_containers.iter();
            let list = if init.any(|init| *init.name == *name) {
                "initContainers"
            } else if ephemeral.any(|one| *one.container.name == *name) {
                "ephemeralContainers"
            } else {
                "containers"
            };
            format!("spec.{list}{{{name}}}")
        });
        let subject = Subject::Pod {
            name: pod.name.clone(),
            uid: Some(pod.uid.clone()),
            field_path: field_path.unwrap_or_default().into(),
        };
        self.record(subject, kind, reason, message);
    }

    /// An event about anything.
    pub fn record(&self, subject: Subject, kind: EventType, reason: &str, message: &str) {
        let now = self.clock.now();
        info!(
            object = %subject,
            r#type = kind.as_str(),
            reason,
            message,
            "Event occurred"
        );
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let same = order.events.iter().position(|event| {
            event.subject == subject
                && *event.reason == *reason
                && *event.message == *message
                && crate::after(event.last, AGGREGATE) > now
        });
        let event = match same.and_then(|at| order.events.remove(at)) {
            Some(event) => Event {
                last: now,
                count: event.count.saturating_add(1),
                ..event
            },
            None => Event {
                name: order.fresh_name(&subject, now),
                subject,
                kind,
                reason: reason.into(),
                message: message.into(),
                first: now,
                last: now,
                count: 1,
            },
        };
        self.board.set(event.name.clone(), event.clone());
        order.events.push_back(event);
        if order.events.len() > KEEP
            && let Some(oldest) = order.events.pop_front()
        {
            self.board.remove(&oldest.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tokio::time::advance;

    use super::*;

    fn about(name: &str) -> Subject {
        Subject::Manifest(name.into())
    }

    /// Events in the order of their last change, as `SUBJECT REASON xCOUNT`.
    fn kept(recorder: &Recorder) -> Vec<String> {
        let mut rows = recorder.board().list();
        rows.sort_by_key(|(_, version, _)| *version);
        let short = |event: &Event| match &event.subject {
            Subject::Manifest(name) => format!("{name} {} x{}", event.reason, event.count),
            other => format!("{other:?}"),
        };
        rows.iter().map(|(_, _, event)| short(event)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn equal_events_are_counted_as_one_as_long_as_they_keep_coming() {
        let recorder = Recorder::new(Clock::following_tokio(Timestamp::UNIX_EPOCH));
        let record = |name, reason, message: &str| {
            recorder.record(about(name), EventType::Warning, reason, message);
        };
        record("a", "Failed", "no");
        record("b", "Failed", "no");
        record("a", "Broken", "no");
        record("a", "Failed", "another message");
        for _ in 0..5 {
            advance(Duration::from_secs(599)).await;
            record("a", "Failed", "no");
        }
        assert_eq!(
            kept(&recorder),
            ["b Failed x1", "a Broken x1", "a Failed x1", "a Failed x6"]
        );
        let rows = recorder.board().list();
        let (_, _, event) = rows.iter().find(|(_, _, event)| event.count == 6).unwrap();
        assert_eq!(event.first, Timestamp::UNIX_EPOCH);
        assert_eq!(event.last.as_second(), 5 * 599);

        advance(AGGREGATE).await;
        record("a", "Failed", "no");
        assert_eq!(kept(&recorder).last().unwrap(), "a Failed x1");
        assert_eq!(kept(&recorder).len(), 5);
    }

    #[test]
    fn the_log_names_what_an_event_is_about() {
        let pod = |field_path: &str| Subject::Pod {
            name: PodName::new("default", "web-n1"),
            uid: None,
            field_path: field_path.into(),
        };
        for (subject, text) in [
            (pod(""), "pod default/web-n1"),
            (
                pod("spec.containers{web}"),
                "pod default/web-n1 spec.containers{web}",
            ),
            (about("/m/a.yaml"), "manifest /m/a.yaml"),
        ] {
            assert_eq!(subject.to_string(), text);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_thousand_are_kept_and_all_have_names_of_their_own() {
        let recorder = Recorder::new(Clock::following_tokio(Timestamp::UNIX_EPOCH));
        for number in 0..KEEP + 200 {
            let name = number.to_string();
            recorder.record(about(&name), EventType::Normal, "Seen", "it is there");
        }
        let rows = kept(&recorder);
        assert_eq!(rows.len(), KEEP);
        assert_eq!(rows[0], "200 Seen x1");
        let names: BTreeSet<_> = recorder
            .board()
            .list()
            .into_iter()
            .map(|(name, ..)| name)
            .collect();
        assert_eq!(names.len(), KEEP);
    }
}

//! Events about pods, manifests and the node, in a bounded history.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use rubelet_api::pod::Pod;
use rubelet_base::{PodName, PodUid};
use serde_json::{Value, json};
use tracing::info;

use crate::{board::Board, clock::Clock};

/// Maximum number of kept events.
const KEEP: usize = 1000;
/// Equal events within this time are aggregated.
const AGGREGATE: Duration = Duration::from_secs(600);

/// `type` of an event.
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

/// The object of an event.
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
    /// A pod, or one of its containers.
    #[must_use]
    pub fn of(pod: &Pod, container: Option<&str>) -> Self {
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
        Self::Pod {
            name: pod.name.clone(),
            uid: Some(pod.uid.clone()),
            field_path: field_path.unwrap_or_default().into(),
        }
    }

    /// The namespace of its events: that of the pod, else `default`.
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

/// Adds the annotations of an event to its `metadata`, if there are any.
pub fn annotate(metadata: &mut Value, event: &Event) {
    for (name, value) in &event.annotations {
        metadata["annotations"][*name] = value.as_str().into();
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

/// Names and values of annotations.
pub type EventAnnotations = Vec<(&'static str, String)>;

/// One event, or several equal ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Unique on this node.
    pub name: Box<str>,
    /// Its object.
    pub subject: Subject,
    /// Normal or Warning.
    pub kind: EventType,
    /// `reason`.
    pub reason: Box<str>,
    /// `message`.
    pub message: Box<str>,
    /// `metadata.annotations`.
    pub annotations: EventAnnotations,
    /// When it first occurred.
    pub first: Timestamp,
    /// When it last occurred.
    pub last: Timestamp,
    /// How often it occurred.
    pub count: u32,
}

/// Records events and keeps the newest. Cheap to clone; never blocks on readers.
#[derive(Debug, Clone)]
pub struct Recorder {
    board: Arc<Board<Box<str>, Event>>,
    order: Arc<Mutex<EventHistory>>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct EventHistory {
    /// By their last occurrence, oldest first.
    events: VecDeque<Event>,
    /// The number in the last assigned name.
    number: u64,
}

impl EventHistory {
    /// A unique name in upstream's form, from the time in nanoseconds.
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

    /// The board with the kept events.
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
        self.record(Subject::of(pod, container), kind, reason, message);
    }

    /// An event about anything.
    pub fn record(&self, subject: Subject, kind: EventType, reason: &str, message: &str) {
        self.record_annotated(subject, kind, (reason, message), Vec::new());
    }

    /// [`Self::record`] with annotations, for programs. They are those of the first of equal events.
    pub fn record_annotated(
        &self,
        subject: Subject,
        kind: EventType,
        (reason, message): (&str, &str),
        annotations: EventAnnotations,
    ) {
        let now = self.clock.now();
        info!(
            object = %subject,
            r#type = kind.as_str(),
            reason,
            message,
            "Event occurred"
        );
        let mut order = self.order.lock();
        let same = order.events.iter().position(|event| {
            event.subject == subject
                && *event.reason == *reason
                && *event.message == *message
                && rubelet_pod_plan::after(event.last, AGGREGATE) > now
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
                annotations,
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
mod tests;

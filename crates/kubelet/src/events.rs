//! Events: what happened to pods, manifests and the node, kept in a bounded record.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use rubelet_api::pod::Pod;
use rubelet_base::{PodName, PodUid};
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
    order: Arc<Mutex<VecDeque<Event>>>,
    clock: Clock,
}

impl Recorder {
    /// A recorder without events.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { board: Arc::new(Board::new()), order: Arc::default(), clock }
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
            let list = if pod.spec.init_containers.iter().any(|init| *init.name == *name) {
                "initContainers"
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
        info!(?subject, r#type = kind.as_str(), reason, message, "Event occurred");
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let same = order.iter().position(|event| {
            event.subject == subject
                && *event.reason == *reason
                && *event.message == *message
                && crate::after(event.last, AGGREGATE) > now
        });
        let event = match same.and_then(|at| order.remove(at)) {
            Some(event) => Event { last: now, count: event.count.saturating_add(1), ..event },
            None => Event {
                name: name(&subject, now, reason, message).into(),
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
        order.push_back(event);
        if order.len() > KEEP
            && let Some(oldest) = order.pop_front()
        {
            self.board.remove(&oldest.name);
        }
    }
}

/// `SUBJECT.HEX`, as upstream names events; the hash keeps two events of one instant apart.
fn name(subject: &Subject, now: Timestamp, reason: &str, message: &str) -> String {
    let (base, path) = match subject {
        Subject::Pod { name, field_path, .. } => (name.name.to_string(), &**field_path),
        Subject::Manifest(path) => ("manifest".to_owned(), &**path),
        Subject::Node(name) => (name.to_string(), ""),
    };
    let hash = [path, reason, message]
        .iter()
        .flat_map(|part| part.bytes().chain([0]))
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    let nanos = u64::try_from(now.as_nanosecond()).unwrap_or_default();
    format!("{base}.{:016x}", nanos ^ (hash & 0xffff_f000))
}

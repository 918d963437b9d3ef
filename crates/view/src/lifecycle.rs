//! Lifecycle events of pods as objects of `node.rubelet.dev/v1alpha1`.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use rubelet_node_state::board::Board;
use rubelet_pleg::{LifecycleEvent, PlegHandle};
use rubelet_server::{Collection, Object};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::publish::Follower;

/// The source of lifecycle events.
pub type LifecycleBoard = Arc<dyn AsRef<Board<u64, LifecycleEvent>> + Send + Sync>;

/// The lifecycle events of a PLEG.
pub struct PlegLifecycle(pub PlegHandle);

impl AsRef<Board<u64, LifecycleEvent>> for PlegLifecycle {
    fn as_ref(&self) -> &Board<u64, LifecycleEvent> {
        self.0.record().board()
    }
}

/// The collection of lifecycle events. It is maintained from the first request on: most agents
/// never get one, and there may be many events a second.
pub(super) struct LifecycleEvents {
    board: LifecycleBoard,
    collection: Arc<Collection>,
    follower: OnceLock<JoinSet<()>>,
}

/// The board as [`Follower`] expects it.
struct Followed(LifecycleBoard);

impl AsRef<Board<u64, LifecycleEvent>> for Followed {
    fn as_ref(&self) -> &Board<u64, LifecycleEvent> {
        (*self.0).as_ref()
    }
}

impl LifecycleEvents {
    pub(super) fn new(board: LifecycleBoard, collection: Arc<Collection>) -> Self {
        Self {
            board,
            collection,
            follower: OnceLock::new(),
        }
    }

    /// The collection, with all events so far.
    pub(super) fn collection(&self) -> &Arc<Collection> {
        self.follower.get_or_init(|| {
            let board = Followed(Arc::clone(&self.board));
            let mut follower = Follower::new(board, Arc::clone(&self.collection), None, object);
            follower.sync();
            let mut tasks = JoinSet::new();
            tasks.spawn(follower.run());
            tasks
        });
        &self.collection
    }
}

/// An event, rendered on request.
fn object(event: Arc<LifecycleEvent>) -> Object {
    // Events without a pod are in the namespace of node events.
    let namespace = event.pod.as_ref().map_or("default", |pod| &pod.namespace);
    let namespace: Arc<str> = namespace.into();
    let name = format!("{:012}", event.number);
    Object::new(&Arc::clone(&namespace), &name.clone(), move || {
        render(&event, &namespace, &name)
    })
}

fn render(event: &LifecycleEvent, namespace: &str, name: &str) -> Value {
    let mut json = json!({
        "metadata": {
            "name": name,
            "namespace": namespace,
            "creationTimestamp": Timestamp::from_second(event.at.as_second())
                .unwrap_or(event.at)
                .to_string(),
        },
        "time": event.at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        "pod": { "uid": event.uid.as_str() },
        "type": event.kind.as_str(),
        "cause": event.cause.to_string(),
    });
    let texts = [
        ("container", event.container.as_deref().unwrap_or_default()),
        ("id", &*event.id),
    ];
    for (field, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        json[field] = text.into();
    }
    if let Some(pod) = &event.pod {
        json["pod"]["name"] = (*pod.name).into();
    }
    for (field, took) in [
        ("afterChangeSeconds", event.from_stamp),
        ("afterEventSeconds", event.from_event),
        ("toStartSeconds", event.to_start),
        ("toSyncSeconds", event.to_sync),
    ] {
        if let Some(took) = took {
            json[field] = took.as_secs_f64().into();
        }
    }
    json
}

//! An API server with one node and one lease, that can be slow, away, or wrong.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use rubelet_kube::{ApiError, Change};
use rubelet_node_plan::node_status::object::Node;
use serde_json::{Map, Value, json};
use tokio::{sync::watch, time::sleep};

use super::super::{
    api::NodeApi,
    node_watch::take,
    observed_node::{ObservedNode, change},
};

/// The API server. Clones are the same one.
#[derive(Clone)]
pub(super) struct Model {
    state: Arc<Mutex<ModelState>>,
    version: watch::Sender<u64>,
}

#[derive(Default)]
struct ModelState {
    node: Option<Value>,
    lease: Option<Value>,
    version: u64,
    uids: u64,
    calls: Vec<&'static str>,
    reconnects: usize,
    /// No request is answered.
    away: bool,
    /// Requests about the node hang.
    nodes_hang: bool,
    /// Nodes can't be created.
    may_not_create: bool,
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            state: Arc::default(),
            version: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ModelState> {
        self.state.lock()
    }

    pub(super) fn set_away(&self, away: bool) {
        self.lock().away = away;
    }

    pub(super) fn set_nodes_hang(&self, hang: bool) {
        self.lock().nodes_hang = hang;
    }

    pub(super) fn forbid_creation(&self) {
        self.lock().may_not_create = true;
    }

    /// The requests since the last time.
    pub(super) fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.lock().calls)
    }

    /// How many requests of that kind there were since the last look at all of them.
    pub(super) fn count(&self, kind: &str) -> usize {
        let state = self.lock();
        state.calls.iter().filter(|call| **call == kind).count()
    }

    pub(super) fn reconnects(&self) -> usize {
        self.lock().reconnects
    }

    pub(super) fn node(&self) -> Option<Node> {
        let node = self.lock().node.clone()?;
        Some(serde_json::from_value(node).unwrap())
    }

    pub(super) fn lease(&self) -> Option<Value> {
        self.lock().lease.clone()
    }

    /// Another client writes the node.
    pub(super) fn write_node(&self, node: &Node) {
        self.put(node.to_json());
    }

    /// Another client changes the node.
    pub(super) fn change_node(&self, change: impl FnOnce(&mut Node)) {
        let mut node = self.node().unwrap();
        change(&mut node);
        self.write_node(&node);
    }

    /// Another client writes the lease.
    pub(super) fn touch_lease(&self) {
        let mut state = self.lock();
        state.version += 1;
        let version = state.version.to_string();
        if let Some(lease) = &mut state.lease {
            lease["metadata"]["resourceVersion"] = version.into();
        }
    }

    /// An administrator deletes the node; its lease goes with it.
    pub(super) fn delete_node(&self) {
        let mut state = self.lock();
        (state.node, state.lease) = (None, None);
        state.version += 1;
        let version = state.version;
        drop(state);
        self.version.send_replace(version);
    }

    fn put(&self, mut node: Value) -> Node {
        let mut state = self.lock();
        state.version += 1;
        if node["metadata"]["uid"].is_null() {
            state.uids += 1;
            node["metadata"]["uid"] = format!("uid-{}", state.uids).into();
        }
        node["metadata"]["resourceVersion"] = state.version.to_string().into();
        state.node = Some(node.clone());
        let version = state.version;
        drop(state);
        self.version.send_replace(version);
        serde_json::from_value(node).unwrap()
    }

    fn put_lease(&self, lease: &Value) -> Value {
        let mut lease = lease.clone();
        let mut state = self.lock();
        state.version += 1;
        lease["metadata"]["resourceVersion"] = state.version.to_string().into();
        state.lease = Some(lease.clone());
        lease
    }

    async fn call(&self, kind: &'static str, about_node: bool) -> Result<(), ApiError> {
        sleep(Duration::from_millis(2)).await;
        let (away, hangs) = {
            let mut state = self.lock();
            state.calls.push(kind);
            (state.away, state.nodes_hang && about_node)
        };
        if hangs {
            pending::<()>().await;
        }
        match away {
            true => Err(ApiError::TimedOut),
            false => Ok(()),
        }
    }

    /// The watch of the node, a little behind.
    pub(super) fn changes(&self) -> Changes {
        Changes {
            model: self.clone(),
            version: self.version.subscribe(),
        }
    }
}

/// A watch of the node.
pub(super) struct Changes {
    model: Model,
    version: watch::Receiver<u64>,
}

impl Changes {
    pub(super) async fn follow(mut self, seen: watch::Sender<ObservedNode>) -> Infallible {
        let mut last: Option<Node> = None;
        let mut listed = false;
        loop {
            self.version.mark_unchanged();
            sleep(Duration::from_millis(5)).await;
            if !self.model.lock().away {
                let node = self.model.node();
                let next = match (listed, node.clone(), last.take()) {
                    (false, node, _) => Some(Change::Listed(node.into_iter().collect())),
                    (true, Some(node), _) => Some(Change::Applied(node)),
                    (true, None, Some(mut last)) => {
                        let version = self.model.lock().version;
                        last.metadata.resource_version = version.to_string().into();
                        Some(Change::Deleted(last))
                    }
                    (true, None, None) => None,
                };
                (listed, last) = (true, node);
                if let Some(next) = next {
                    change(&seen, |seen| take(seen, next));
                }
            }
            if self.version.changed().await.is_err() {
                pending::<()>().await;
            }
        }
    }
}

fn refusal(code: u16, reason: &str) -> ApiError {
    ApiError::Status {
        code,
        reason: reason.to_owned(),
        message: format!("refused: {reason}"),
        retry_after: None,
    }
}

impl NodeApi for Model {
    async fn create_node(&self, node: &Value) -> Result<Node, ApiError> {
        self.call("create node", true).await?;
        if self.lock().may_not_create {
            return Err(refusal(403, "Forbidden"));
        }
        match self.node() {
            Some(_) => Err(refusal(409, "AlreadyExists")),
            None => Ok(self.put(node.clone())),
        }
    }

    async fn get_node(&self) -> Result<Node, ApiError> {
        self.call("get node", true).await?;
        self.node().ok_or_else(|| refusal(404, "NotFound"))
    }

    async fn patch_node(&self, patch: &Value) -> Result<Node, ApiError> {
        self.call("patch node", true).await?;
        let node = self.lock().node.clone();
        let node = node.ok_or_else(|| refusal(404, "NotFound"))?;
        Ok(self.put(merged(node, patch)))
    }

    async fn create_lease(&self, lease: &Value) -> Result<Value, ApiError> {
        self.call("create lease", false).await?;
        Ok(self.put_lease(lease))
    }

    async fn get_lease(&self) -> Result<Value, ApiError> {
        self.call("get lease", false).await?;
        self.lease().ok_or_else(|| refusal(404, "NotFound"))
    }

    async fn replace_lease(&self, lease: &Value) -> Result<Value, ApiError> {
        self.call("replace lease", false).await?;
        let Some(old) = self.lease() else {
            return Err(refusal(404, "NotFound"));
        };
        if old["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] {
            return Err(refusal(409, "Conflict"));
        }
        Ok(self.put_lease(lease))
    }

    fn reconnect(&self) {
        self.lock().reconnects += 1;
    }
}

/// A strategic merge, as far as a node's status needs it.
fn merged(old: Value, patch: &Value) -> Value {
    match (old, patch) {
        (Value::Object(mut fields), Value::Object(changes)) => {
            for (key, change) in changes {
                let before = fields.remove(key).unwrap_or_default();
                if !change.is_null() {
                    fields.insert(key.clone(), merged(before, change));
                }
            }
            fields.into()
        }
        (Value::Array(old), Value::Array(changes)) => list(old, changes).into(),
        (Value::Null, Value::Object(_)) => merged(Map::new().into(), patch),
        (_, other) => other.clone(),
    }
}

fn list(mut old: Vec<Value>, changes: &[Value]) -> Vec<Value> {
    let replace = json!({ "$patch": "replace" });
    if changes.contains(&replace) {
        return changes
            .iter()
            .filter(|one| **one != replace)
            .cloned()
            .collect();
    }
    if changes.iter().any(|one| one["type"].is_null()) {
        return changes.to_vec();
    }
    for change in changes {
        match old.iter_mut().find(|one| one["type"] == change["type"]) {
            Some(entry) => *entry = merged(entry.take(), change),
            None => old.push(change.clone()),
        }
    }
    old
}

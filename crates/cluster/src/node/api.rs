//! The few requests that the node's tasks make, each with a deadline.

use std::{sync::Arc, time::Duration};

use rubelet_kube::{ApiError, Client, PatchKind};
use rubelet_node_plan::node_status::{NodeSettings, object::Node};
use serde_json::Value;

/// Requests per second of status and lease together, and how many may come at once: they have a
/// limit of their own, so that they never wait behind pods.
const QPS: f32 = 5.0;
const BURST: u32 = 10;

/// The API server as the node's tasks use it.
pub(super) trait NodeApi: Clone + Send + Sync + 'static {
    fn create_node(&self, node: &Value) -> impl Future<Output = Result<Node, ApiError>> + Send;
    fn get_node(&self) -> impl Future<Output = Result<Node, ApiError>> + Send;
    fn patch_node(&self, patch: &Value) -> impl Future<Output = Result<Node, ApiError>> + Send;
    fn create_lease(&self, lease: &Value) -> impl Future<Output = Result<Value, ApiError>> + Send;
    fn get_lease(&self) -> impl Future<Output = Result<Value, ApiError>> + Send;
    fn replace_lease(&self, lease: &Value) -> impl Future<Output = Result<Value, ApiError>> + Send;
    /// Makes new connections: the old ones may lead nowhere.
    fn reconnect(&self);
}

/// The API server for real.
#[derive(Debug, Clone)]
pub(super) struct KubeNodeApi {
    nodes: Client,
    leases: Client,
    name: Arc<str>,
}

impl KubeNodeApi {
    pub(super) fn new(client: &Client, settings: &NodeSettings) -> Self {
        let longest = |timeout: Duration| timeout.max(Duration::from_secs(1));
        Self {
            nodes: client.with_limits(QPS, BURST, longest(settings.update_frequency)),
            leases: client.with_limits(QPS, BURST, longest(settings.lease_duration / 4)),
            name: Arc::from(&*settings.name),
        }
    }

    fn lease_path(&self) -> String {
        format!("{LEASES}/{}", self.name)
    }
}

const NODES: &str = "/api/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

impl NodeApi for KubeNodeApi {
    async fn create_node(&self, node: &Value) -> Result<Node, ApiError> {
        self.nodes.create(NODES, node).await
    }

    async fn get_node(&self) -> Result<Node, ApiError> {
        self.nodes.get(&format!("{NODES}/{}", self.name)).await
    }

    async fn patch_node(&self, patch: &Value) -> Result<Node, ApiError> {
        let path = format!("{NODES}/{}/status", self.name);
        let kind = PatchKind::StrategicMerge;
        self.nodes.patch(&path, kind, patch).await
    }

    async fn create_lease(&self, lease: &Value) -> Result<Value, ApiError> {
        self.leases.create(LEASES, lease).await
    }

    async fn get_lease(&self) -> Result<Value, ApiError> {
        self.leases.get(&self.lease_path()).await
    }

    async fn replace_lease(&self, lease: &Value) -> Result<Value, ApiError> {
        self.leases.replace(&self.lease_path(), lease).await
    }

    fn reconnect(&self) {
        self.nodes.reload();
    }
}

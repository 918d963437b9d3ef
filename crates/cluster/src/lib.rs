//! A node of a cluster: what goes between the agent and the API server.
//!
//! - [`source`]: the pods that are bound to this node.
//! - [`status`]: their statuses, and their deletion once they have ended. [`mirror`]: mirror pods of manifests.
//! - [`node`]: the node object, its status and lease. [`events`]: events.
//! - [`objects`]: config maps, secrets and tokens of pods. [`auth`]: reviews of who may use the kubelet API (port 10250).
//!
//! It never calls the runtime and never starts or stops a pod: it names the pods that are desired, and passes on
//! what the kubelet's boards show. Here, the source follows a model API server that has one pod for this node:
//!
//! ```
//! use std::sync::Arc;
//!
//! use rubelet_base::PodName;
//! use rubelet_cluster::source::{self, ApiPods, SourceParts, admission_gate::AdmissionGate};
//! use rubelet_kube::{Client, ClientConfig, ClientOptions, Connector, WatchReopener};
//! use rubelet_node_state::{
//!     clock::Clock, events::Recorder, intents::IntentBoard, metrics::NodeMetrics,
//! };
//! use serde_json::json;
//! use sim_api::{SimApi, SimApiConfig};
//! use tokio::sync::watch;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let server = Arc::new(SimApi::start(SimApiConfig::default()).await?);
//! # let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}});
//! # server.create("nodes", &node).expect("a node");
//! let pod = json!({
//!     "apiVersion": "v1",
//!     "kind": "Pod",
//!     "metadata": {"name": "web", "namespace": "default"},
//!     "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "nginx"}]},
//! });
//! server.create("pods", &pod).expect("a pod");
//! # let connector = Connector::new(move || {
//! #     let server = Arc::clone(&server);
//! #     async move { Ok(server.connect()) }
//! # });
//! let config = ClientConfig::anonymous("http://model")?.over(connector);
//! let api: Arc<ApiPods> = Arc::default();
//! let (desired, mut wanted) = watch::channel(source::unknown());
//! tokio::spawn(source::run(SourceParts {
//!     client: Client::new(config, ClientOptions::default())?,
//!     reopener: WatchReopener::default(),
//!     node_name: "node-1".into(),
//!     directory: directory.path().join("pods"),
//!     api: Arc::clone(&api),
//!     gate: Arc::new(AdmissionGate::new(api, Box::new(|_, _| Ok(())))),
//!     intents: IntentBoard::new(directory.path().join("intents")),
//!     recorder: Recorder::new(Clock::system()),
//!     problem: watch::Sender::new(None),
//!     desired,
//!     clock: Clock::system(),
//!     metrics: NodeMetrics::new(),
//! }));
//! let wanted = wanted.wait_for(|desired| !desired.pods.is_empty()).await?;
//! assert!(wanted.pods.contains_key(&PodName::new("default", "web")));
//! # Ok(())
//! # }
//! ```

pub mod auth;
mod call_error;
pub mod events;
pub mod mirror;
pub mod node;
pub mod objects;
pub mod source;
pub mod status;
#[cfg(test)]
mod test_objects;

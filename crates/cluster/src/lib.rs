//! A node of a cluster: what goes between the agent and the API server.
//!
//! - [`source`]: the pods that are bound to this node.
//! - [`status`]: their statuses, and their deletion once they have ended. [`mirror`]: mirror pods of manifests.
//! - [`node`]: the node object, its status and lease. [`events`]: events.
//! - [`objects`]: config maps, secrets and tokens of pods. [`auth`]: reviews of who may use the kubelet API (port 10250).
//!
//! It never calls the runtime and never starts or stops a pod: it names the pods that are desired, and passes on
//! what the kubelet's boards show. What it reports of its own work goes to observers, such as this one, which ignores it:
//!
//! ```
//! use std::time::Duration;
//!
//! use rubelet_cluster::status::{IgnoreDurations, StatusMetrics};
//!
//! IgnoreDurations.sent(Duration::from_millis(5));
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

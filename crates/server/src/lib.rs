//! The local HTTP API: the Kubernetes API's own paths and types over a unix socket, and the health
//! port.
//!
//! The server knows nothing of the kubelet. It sees a [`NodeView`]: lists with resource versions,
//! watches, container logs, health, and the few actions on a pod ([`PodAction`]). [`Collection`]
//! implements the list and watch half of it.
//!
//! - [`serve_unix`] serves a bound unix socket; who may connect is decided by the socket's file
//!   mode and group alone ([`UnixSocket`]). Only root adds containers to pods.
//! - [`serve_health`] serves `/healthz` and `/metrics` on TCP, and nothing else.
//! - A session (exec, attach, port-forward) is served on the socket; once upgraded, its connection
//!   belongs to `rubelet-streaming`.
//! - [`explanation`] is the document that explains a pod's state.
//! - [`table`] holds the printing rules of `get`, shared by the Table answers and the command line.
//!
//! Tasks: one accept loop per listener, one task per connection. A watch or a followed log is the
//! body of its response; the connection that sends it polls it, so a slow reader costs no memory
//! and an idle one costs nothing.
//!
//! ```
//! use std::sync::Arc;
//!
//! use rubelet_server::{Collection, Object};
//! use serde_json::json;
//!
//! let pods = Arc::new(Collection::new(100, 10));
//! let pod = json!({"metadata": {"name": "web", "namespace": "default"}});
//! let version = pods.put(Object::new("default", "web", move || pod.clone()));
//! let listing = pods.listing();
//! assert_eq!(listing.resource_version, version);
//! assert_eq!(&*listing.items[0].name, "web");
//! ```

mod accept;
mod act;
mod action;
mod action_error;
mod attributes;
mod collection;
mod discovery;
pub mod explanation;
mod files;
pub mod group;
pub mod health;
mod list;
pub mod log;
mod net;
mod object;
mod patch;
mod pod_patch;
mod route;
mod selector;
mod serve;
mod session;
mod stats;
pub mod table;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod unix;
mod view;
mod watch;

#[cfg(test)]
mod tests;

pub use action::{PodAction, PodAnswer, PodRef};
pub use action_error::ActionError;
pub use collection::Collection;
pub use discovery::{KUBERNETES_MAJOR, KUBERNETES_MINOR, git_version, platform};
pub use files::{FileStream, FilesAnswer, FilesRefusal, FilesRequest};
pub use net::{NetRefusal, NetRequest, NetStream};
pub use object::{Object, Render};
pub use patch::{PatchError, patched};
pub use pod_patch::{ConditionChanges, PodCondition, PodPatch, is_agent_condition};
pub use rubelet_http_core::{
    clock,
    connections::{ConnectionObserver, RefusalReason},
    field_error::FieldError,
    resource::Resource,
};
pub use serve::{bind_health, serve_health, serve_unix};
pub use session::{RunRequest, SessionAction, SessionError, SessionRequest};
pub use stats::{StatsDocument, StatsRequest};
pub use unix::{BindError, UnixSocket, bind_unix};
pub use view::{
    Expired, Listing, LogError, LogOutput, LogRequest, LogSince, LogStream, NodeView, RunningPod,
    SystemLog, Unhealthy, WatchEvent, WatchKind, WatchStream,
};

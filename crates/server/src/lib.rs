//! The local HTTP API: the Kubernetes API's own paths and types over a unix socket, and the health
//! port.
//!
//! The server knows nothing of the kubelet. It sees a [`NodeView`]: lists with resource versions,
//! watches, container logs, health, and the few things that can be done to a pod ([`PodAction`]).
//! [`Collection`] implements the list and watch half of it.
//!
//! - [`serve_unix`] answers on a bound unix socket; who may connect is decided by the socket's file
//!   mode and group alone ([`UnixSocket`]). Only root adds containers to pods.
//! - [`serve_health`] answers `/healthz` and `/metrics` on TCP, and nothing else.
//! - [`secure`] is the kubelet's own API over TLS, with authentication and authorisation, and the
//!   plain read-only port.
//! - [`table`] holds the printing rules of `get`, shared by the Table answers and the command line.
//!
//! Tasks: one accept loop per listener, one task per connection. A watch or a followed log is the
//! body of its answer; it is pulled by the connection that sends it, so a slow reader costs no
//! memory and an idle one costs nothing.

mod accept;
mod act;
mod action;
mod activity;
mod admission;
pub mod audit;
pub mod clock;
mod collection;
mod connections;
mod discovery;
pub mod group;
mod health;
mod list;
mod log;
mod patch;
mod peer;
mod pod_patch;
mod query;
mod resource;
mod respond;
mod route;
pub mod secure;
mod selector;
mod serve;
mod status;
pub mod table;
mod tracked;
mod unix;
mod view;
mod watch;

#[cfg(test)]
mod tests;

pub use action::{ActionError, FieldError, PodAction, PodAnswer, PodRef};
pub use collection::Collection;
pub use connections::{ConnectionObserver, RefusalReason};
pub use discovery::{KUBERNETES_MAJOR, KUBERNETES_MINOR, git_version};
pub use patch::{PatchError, patched};
pub use pod_patch::{ConditionChanges, PodCondition, PodPatch, is_agent_condition};
pub use resource::Resource;
pub use selector::LabelSelector;
pub use serve::{bind_health, serve_health, serve_unix};
pub use unix::{BindError, UnixSocket, bind_unix};
pub use view::{
    Expired, Listing, LogError, LogOutput, LogRequest, LogSince, LogStream, NodeView, Object,
    Render, RunningPod, WatchEvent, WatchKind, WatchStream,
};

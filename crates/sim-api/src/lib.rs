//! A model of the API server, with faults: for tests, and to try a node by hand.
//!
//! [`SimApi`] keeps objects in memory and answers as the real one does, as far as a node, kubectl and
//! tests of them can tell: discovery, lists with selectors and parts, watches with bookmarks and
//! initial events, the three kinds of patches, preconditions, graceful deletion, subresources, tokens,
//! certificates, reviews, and errors with upstream's reasons and words. It schedules pods, but none whose
//! volumes are claimed, answers logs from the node, and can be as strict with nodes as the real one:
//! each reads what its pods name, and for a moment after a start not even that.
//!
//! It goes wrong on request ([`Rule`], [`SimApi::restart`], [`SimApi::set_frozen`]), by chance with a
//! seed, and keeps a record of all requests and of what no node may do ([`SimApi::violations`]). [`odd`]
//! makes objects that no server should send.
//!
//! Tasks: one accept loop, one per connection, the scheduler and the node lifecycle. They share the
//! objects behind a lock that is never held across a wait. All time is tokio's: with
//! [`SimApi::connect`], which needs no network, tests with paused time take none.
//!
//! Not modelled: OpenAPI documents, server-side apply, answers in YAML, workload controllers, volumes of the
//! cluster, exec, attach and port-forward.

mod access;
mod answer;
mod authentication;
mod authority;
mod base64;
mod clock;
mod config;
mod dice;
mod discovery;
mod event_form;
mod fault;
mod form;
mod kind;
mod kubeconfig;
mod lifecycle;
mod meta;
mod node_authorizer;
mod node_proxy;
pub mod odd;
mod oracle;
mod patch;
mod protobuf;
mod query;
mod request;
mod respond;
mod review;
mod route;
mod scheduler;
mod selection;
mod serve;
mod service_account;
mod sim_api;
mod state;
mod status_error;
mod store;
mod strategy;
mod subresource;
mod table;
mod user;
mod verb;

#[cfg(test)]
mod tests;

pub use access::AccessRule;
pub use authority::{Authority, AuthorityError, Identity};
pub use config::{Approval, SimApiConfig};
pub use fault::{Fault, PROFILES, Rule, RuleError, profile};
pub use kind::{KINDS, Kind};
pub use kubeconfig::Credentials;
pub use oracle::{Counts, DeleteHook, RequestRecord, Violation};
pub use sim_api::{NotSeen, Restart, SimApi, StartError};
pub use status_error::StatusError;
pub use user::User;

//! A model of the API server with fault injection, for tests and for trying a node by hand.
//!
//! [`SimApi`] keeps objects in memory and responds as the real server does, as far as nodes, kubectl and
//! their tests can tell. It injects faults ([`Rule`], [`SimApi::restart`], [`SimApi::set_frozen`]), also at
//! random with a seed, and records all requests and violations by nodes ([`SimApi::violations`]).
//! [`malformed`] creates objects that no server should send.
//!
//! Tasks: one accept loop, one per connection, the scheduler and the node lifecycle. They share the
//! objects behind a lock that is never held across an await. All time is tokio's: with
//! [`SimApi::connect`], which needs no network, tests can pause it.
//!
//! ```
//! use serde_json::json;
//! use sim_api::{SimApi, SimApiConfig};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let api = SimApi::start(SimApiConfig::default()).await.expect("a free port");
//! let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}});
//! api.create("nodes", &node).expect("a valid node");
//! assert_eq!(api.list("nodes").len(), 1);
//! assert!(api.violations().is_empty());
//! # });
//! ```
//!
//! # Rules
//!
//! The rules are those of Kubernetes 1.36. The model implements them itself: it shares nothing with the
//! product except durations and seeded numbers, so that the two can't have the same bug. Each file names its
//! source upstream.
//!
//! - Formats: JSON, tables with `includeObject`, protobuf for all kinds, errors and watches; by the weights
//!   of `Accept`, and 406 for anything else. Bodies in JSON and protobuf.
//! - Patches: JSON patch with the deviations of upstream's library (a missing field can be replaced, copied
//!   and tested for null), JSON merge patch, strategic merge patch with all directives. New entries of a list
//!   come before those that the patch does not name. A 422 has no reason; an error to which upstream assigns
//!   no code is a 500.
//! - Selectors: label selectors whose values must be label values, also after `>`; field selectors with
//!   escapes, on the fields that upstream supports; a boolean is never empty.
//! - Lists of the current or of an earlier version, in chunks; watches with bookmarks and initial events; a
//!   compacted version is 410, a future one 504.
//! - Writes: UID and version as preconditions, dry runs, `generateName`, generations, finalizers, graceful
//!   deletion of pods, subresources that change only their part.
//! - Pods: defaults, admission of priorities, tolerations and service accounts, QoS; a spec that is immutable
//!   except for a few fields; terminated containers that stay terminated; consistent pod and host IPs, one of
//!   each family; a nominated node only before binding.
//! - Nodes, leases, events, secrets, services, namespaces, certificate requests: defaults and validation of
//!   what a node writes. Events of the newer group are validated strictly and are nearly immutable; numbers
//!   of a lease must be positive.
//! - Tokens: audiences of the server and of reviews; lifetimes from ten minutes, limited by a setting, and a
//!   year for a pod's own token of 3607 s; a leeway of a minute; valid only while account, pod, secret or
//!   node exist unchanged.
//! - Authorization: the node authorizer, object by object; NodeRestriction, including tokens and their
//!   audiences. Other users may do what no rule denies ([`AccessRule`]).
//! - exec, attach and port-forward: the container, the kubelet's query, and the upgraded connection, passed
//!   through to the node byte by byte until either side closes it; an error of the node is passed through
//!   unchanged. GET needs `create` too.
//! - Cache lag: the node authorizer and NodeRestriction know of a pod what was stored
//!   [`SimApiConfig::cache_lag`] ago. A node to which a pod was just bound gets 403 for its secrets, config
//!   maps and service account ("no relationship found between node ... and this object") and for its token
//!   ("node requested token bound to a pod scheduled on a different node"), or 404 for the token of a new
//!   pod; what a removed pod referenced can be read until then. A compaction ends the lag of the changes
//!   that it removes. The authorizer knows no pods for [`SimApiConfig::relations_after`] after a start;
//!   [`SimApi::hold_pods`] freezes a cache.
//! - Controllers: a scheduler that binds no pod with claimed volumes, signers and approvers, the node lifecycle.
//!
//! # Not modelled
//!
//! - OpenAPI documents, server-side apply and `managedFields`, `fieldValidation`, answers in YAML and CBOR,
//!   `PartialObjectMetadata`, tables in protobuf, negative indices in a JSON patch, warnings in headers.
//! - Workload controllers, garbage collection by owners, quotas, limit ranges, pod security, webhooks,
//!   priority classes except for the two of the system, pod disruption budgets.
//! - Persistent volumes, resource claims and slices, pod certificate requests, cluster trust bundles: these
//!   kinds are not served, so the rules of the node authorizer about them are missing too.
//! - Roles and bindings, impersonation, legacy tokens in secrets, the cache of successful token
//!   authentication for ten seconds.
//! - Translation of WebSocket sessions for a node that does not declare `ExtendWebSocketsToKubelet`; resizes
//!   of pods.
//! - Validation of fields that no test of a node depends on: a body of the right type is mostly accepted, and
//!   unknown fields are kept instead of dropped.

mod access;
mod answer;
mod authentication;
mod authority;
mod base64;
mod clock;
mod config;
mod dice;
mod discovery;
mod event_conversion;
mod fault;
mod kind;
mod kubeconfig;
mod lifecycle;
pub mod malformed;
mod meta;
mod negotiation;
mod node_authorizer;
mod node_proxy;
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
pub use oracle::{Counts, RequestRecord, Violation};
pub use query::encode as encode_query;
pub use sim_api::{Restart, SimApi, StartError, WaitTimeout};
pub use state::PodCache;
pub use status_error::StatusError;
pub use user::User;

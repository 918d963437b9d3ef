//! A model of the API server, with faults: for tests, and to try a node by hand.
//!
//! [`SimApi`] keeps objects in memory and answers as the real one does, as far as a node, kubectl and
//! tests of them can tell. It goes wrong on request ([`Rule`], [`SimApi::restart`], [`SimApi::set_frozen`]), by
//! chance with a seed, and keeps a record of all requests and of what no node may do ([`SimApi::violations`]).
//! [`odd`] makes objects that no server should send.
//!
//! Tasks: one accept loop, one per connection, the scheduler and the node lifecycle. They share the
//! objects behind a lock that is never held across a wait. All time is tokio's: with
//! [`SimApi::connect`], which needs no network, tests with paused time take none.
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
//! The rules are those of Kubernetes 1.36. They are the model's own: it takes nothing from the product but durations and
//! seeded numbers, so that the two can't share a mistake. Each file names its source upstream.
//!
//! - Forms: JSON, tables with `includeObject`, protobuf for all kinds, errors and watches; by the weights of `Accept`, and
//!   406 for anything else. Bodies in JSON and protobuf.
//! - Patches: JSON patch with the liberties of upstream's library (a missing field can be replaced, copied and tested for
//!   null), JSON merge patch, strategic merge patch with all directives. New entries of a list come before those that the
//!   patch does not name. A 422 does not say why; an error that upstream gives no code is a 500.
//! - Selectors: label selectors whose values must be label values, also behind `>`; field selectors with escapes, on the
//!   fields that upstream selects by, and a boolean is never empty.
//! - Lists of now or of a remembered version, in parts; watches with bookmarks and initial events; a version that is
//!   forgotten is 410, one that is still to come a 504.
//! - Writes: UID and version as preconditions, dry runs, `generateName`, generations, finalizers, graceful deletion of pods,
//!   subresources that change their part only.
//! - Pods: defaults, the admission of priorities, tolerations and service accounts, QoS; a specification that is fixed but
//!   for a few fields; ended containers that stay ended; addresses of a status that agree and are one of each family; a
//!   nominated node only before binding.
//! - Nodes, leases, events, secrets, services, namespaces, certificate requests: defaults and checks of what a node writes.
//!   Events of the newer group are checked strictly and hardly change; numbers of a lease must mean something.
//! - Tokens: audiences of the server and of reviews; lives from ten minutes, cut where the settings say so, and a year for
//!   a pod's own token of 3607 s; a leeway of a minute; good only while account, pod, secret or node are there and the same.
//! - Authorization: what a node may do at all, one object at a time; what it may write (NodeRestriction), tokens and their
//!   audiences included. Others may do what no rule forbids ([`AccessRule`]).
//! - exec, attach and port-forward: the container, the kubelet's query, and the upgraded connection passed through to the node
//!   byte by byte, which ends when one side does; a refusal of the node is the answer as it is. GET needs `create`, too.
//! - Caches that lag: the authorizer of nodes and NodeRestriction know of a pod what was stored
//!   [`SimApiConfig::cache_lag`] ago. A node that was just given a pod gets 403 for its secrets, maps and service account ("no
//!   relationship found between node ... and this object") and for its token ("node requested token bound to a pod
//!   scheduled on a different node"), or 404 for the token of a pod that is new; what a removed pod named can be read
//!   until then. A compaction ends the lag of what it forgets. The authorizer knows nothing for
//!   [`SimApiConfig::relations_after`] after a start; [`SimApi::hold_pods`] holds a cache where it is.
//! - Controllers: a scheduler that binds no pod with claimed volumes, signers and approvers, the node lifecycle.
//!
//! # Not modelled
//!
//! - OpenAPI documents, server-side apply and `managedFields`, `fieldValidation`, answers in YAML and CBOR,
//!   `PartialObjectMetadata`, tables in protobuf, negative indices in a JSON patch, warnings in headers.
//! - Workload controllers, garbage collection by owners, quotas, limit ranges, pod security, webhooks, priority classes but
//!   the two of the system, pod disruption budgets.
//! - Volumes of the cluster, resource claims and slices, pod certificate requests, cluster trust bundles: these kinds are not
//!   served, so the rules of the authorizer of nodes about them are absent, too.
//! - Roles and bindings, impersonation, legacy tokens in secrets, a token's success remembered for ten seconds.
//! - Sessions over WebSockets translated for a node that does not declare `ExtendWebSocketsToKubelet`; resizes of pods.
//! - Validation of fields that no test of a node depends on: a body that has the right type mostly passes, and unknown
//!   fields are kept instead of dropped.

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
pub use query::encode as encode_query;
pub use sim_api::{NotSeen, Restart, SimApi, StartError};
pub use state::PodCache;
pub use status_error::StatusError;
pub use user::User;

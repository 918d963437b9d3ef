//! What the HTTP servers of the agent have in common: connections and their limits, queries,
//! responses and errors, sessions, and the users who send requests.
//!
//! - [`listener`] accepts connections. [`admission`] decides which of them are kept, [`connections`]
//!   closes the others, and [`activity`] closes those that are idle.
//! - [`query`] reads requests; [`respond`] and [`status`] build responses, whose bodies
//!   are [`tracked`] until they are sent.
//! - [`session`] turns a connection into a session (exec, attach, port-forward); from then on it
//!   belongs to `rubelet-streaming`.
//! - [`peer`] is who is connected, [`user`] who sends a request and who decides what they may do.
//!
//! The paths, and what is behind them, are a matter of the servers. This crate knows the names of
//! resources and how errors name them, but does not authenticate or authorize anybody, and sees no
//! state of a pod.
//!
//! ```
//! use rubelet_http_core::{query::Query, resource::Resource, status::ApiError};
//!
//! let query = Query::parse(Some("labelSelector=app%3Dweb&limit=none")).unwrap();
//! assert_eq!(query.get("labelSelector"), Some("app=web"));
//! let error = query.number("limit", 1).unwrap_err();
//! assert_eq!(error.code.as_u16(), 400);
//!
//! let missing = ApiError::not_found(Resource::Pods, "web");
//! assert_eq!(missing.to_json()["message"], "pods \"web\" not found");
//! ```

pub mod activity;
pub mod admission;
pub mod clock;
pub mod connections;
pub mod field_error;
pub mod listener;
pub mod peer;
pub mod query;
pub mod resource;
pub mod respond;
pub mod session;
pub mod shutdown;
pub mod status;
pub mod tracked;
pub mod user;

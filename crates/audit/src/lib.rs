//! Audit events in the form of `audit.k8s.io/v1`, as JSON lines in a file: who requested what, and
//! what the response was.
//!
//! - [`AuditPolicy`] decides which requests are recorded: None or Metadata, by the rules of the API
//!   server's audit policy.
//! - `event` renders an event, `redact` bounds it and removes secrets.
//! - [`AuditedRequest`] follows one request to its end. The server says what it is about
//!   ([`RequestAttributes`]): this crate does not know the paths of the local API.
//! - [`AuditLog`] is a bounded queue and a thread that writes the file. A disk that is full or slow
//!   loses events, which are counted, and never delays a request.
//!
//! Bodies, headers other than `User-Agent`, and values of query parameters that are not known to be
//! harmless are never recorded, so a policy that demands them is refused:
//!
//! ```
//! use rubelet_audit::AuditPolicy;
//!
//! let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Request\n";
//! let refused = AuditPolicy::read("policy.yaml", text).unwrap_err();
//! assert_eq!(
//!     refused.to_string(),
//!     "policy.yaml:4:3: rules[0].level: must be None or Metadata, is \"Request\": \
//!      bodies are never recorded"
//! );
//! ```

mod attributes;
mod event;
mod file;
mod log;
mod policy;
mod redact;
mod request;
#[cfg(test)]
mod tests;

pub use self::{
    attributes::{RequestAttributes, ResourceRef},
    file::Rotation,
    log::{AuditLog, AuditObserver, AuditOpenError},
    policy::{AuditLevel, AuditPolicy, AuditPolicyError},
    request::{AUDIT_ID, AuditedRequest, local_user, malformed},
};

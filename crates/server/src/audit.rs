//! Audit events in the form of `audit.k8s.io/v1`, as JSON lines in a file: who requested what, and
//! what the response was.
//!
//! - [`AuditPolicy`] decides which requests are recorded: None or Metadata, by the rules of the API
//!   server's audit policy.
//! - `event` renders an event, `redact` bounds it and removes secrets: bodies, headers other than
//!   `User-Agent`, and values of query parameters that are not known to be harmless are never
//!   recorded.
//! - `request` follows one request to its end.
//! - [`AuditLog`] is a bounded queue and a thread that writes the file. A disk that is full or slow
//!   loses events, which are counted, and never delays a request.

mod attributes;
mod event;
mod file;
mod log;
mod policy;
mod redact;
mod request;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::{
    attributes::RequestAttributes,
    request::{AUDIT_ID, AuditedRequest, local_user, malformed},
};
pub use self::{
    file::Rotation,
    log::{AuditLog, AuditObserver, AuditOpenError},
    policy::{AuditLevel, AuditPolicy, AuditPolicyError},
};

//! Audit events in the form of `audit.k8s.io/v1`, as JSON lines in a file: who asked for what, and
//! what the answer was.
//!
//! - [`AuditPolicy`] decides which requests are recorded: None or Metadata, by the rules of the API
//!   server's audit policy.
//! - `event` draws an event, `redact` bounds it and keeps secrets out: bodies, headers other than
//!   `User-Agent`, and values of query parameters that are not known to be harmless are never in it.
//! - `request` follows one request to its end.
//! - [`AuditLog`] is a bounded queue before a thread of its own that writes the file. A disk that is
//!   full or slow costs events, which are counted, and never a request.

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

//! The CRI traits, call by call.

mod events;
mod exec;
mod images;
mod request_subject;
mod runtime;

//! The CRI traits, call by call.

mod about;
mod events;
mod exec;
mod images;
mod runtime;

//! The CRI traits, call by call.

mod about;
mod exec;
mod images;
mod runtime;

//! The CRI traits, call by call.

mod about;
mod images;
mod runtime;

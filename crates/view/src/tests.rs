//! The server's view, on boards that a test fills.

mod actions;
mod fake_runtime;
mod fixture;
mod lifecycle;
mod net;
mod pods;
mod sessions;
mod why;

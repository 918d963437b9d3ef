//! What the server sees, in front of boards that a test fills.

mod actions;
mod fixture;
mod lifecycle;
mod pods;
mod why;

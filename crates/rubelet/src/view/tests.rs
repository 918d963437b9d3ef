//! What the server sees, in front of boards that a test fills.

mod actions;
mod fixture;
mod pods;
mod why;

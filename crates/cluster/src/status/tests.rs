//! Tests of status sync.

mod merging;
mod random;
mod server;
mod steps;
mod story;

//! Complete error messages for users, so that changes of them are visible in a review. Run with
//! `RUBELET_UPDATE_MESSAGES=1` to write the files that the messages are compared with.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

mod commands;
mod full_disk;
mod join;
mod manifests;
mod node;
mod pods;
mod sessions;
mod snapshot;
mod start;

use rubelet_testbed::runtime::Kind;

/// Whether the runtime is the embedded one: another one has its own messages.
fn own_words() -> bool {
    let is_inside = Kind::wanted().unwrap() == Kind::Embedded;
    rubelet_needs::applies(is_inside, "the runtime says it in its own words")
}

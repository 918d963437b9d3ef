//! What users read when something is wrong, whole, so that a change of words shows in a review. Run
//! with `RUBELET_UPDATE_MESSAGES=1` to write the files that the messages are compared with.

#![allow(
    clippy::unwrap_used,
    reason = "what fails in a test says so by its place"
)]

mod commands;
mod manifests;
mod node;
mod pods;
mod snapshot;
mod start;

use rubelet_testbed::runtime::Kind;

/// Whether the runtime is the embedded one: another one says in its own words what is wrong.
fn own_words() -> bool {
    let is_inside = Kind::wanted().unwrap() == Kind::Embedded;
    rubelet_needs::applies(is_inside, "the runtime says it in its own words")
}

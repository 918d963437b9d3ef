//! A shim and its containers, driven as an agent drives them. As root, on the host's cgroups.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that can't go on fails"
)]

mod attach;
mod exec;
mod external;
mod fixture;
mod lifecycle;
mod logs;
mod protocol;
mod silent;
mod stopped;
mod streams;
mod survival;
mod target;

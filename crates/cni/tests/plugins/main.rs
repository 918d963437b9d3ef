//! CNI configurations: with plugins made of shell lines, and with Debian's own plugins between network
//! namespaces made by the tests. They need root.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    reason = "a test that can't go on fails"
)]

mod debian;
mod scripts;
#[path = "../bridge/world.rs"]
#[expect(dead_code, reason = "these tests need a part of it")]
mod world;

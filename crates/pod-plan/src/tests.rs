//! The rules as tables: what was seen, what follows.

mod ahead;
pub(crate) mod build;
mod containers;
mod ends;
mod ephemeral;
mod gates;
mod health;
mod images;
mod init;
mod model;
mod properties;
mod removal;
mod restart_all;
mod rules;
mod sandbox;
mod sidecars;
mod statuses;

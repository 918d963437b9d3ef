//! The rules as tables: what was seen, what follows.

pub(crate) mod build;
mod containers;
mod ends;
mod ephemeral;
mod gates;
mod health;
mod images;
mod init;
mod kernel_exit;
mod model;
mod precreate;
mod properties;
mod removal;
mod restart_all;
mod rules;
mod sandbox;
mod sidecars;
mod statuses;

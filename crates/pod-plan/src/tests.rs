//! The rules as tables: what was seen, what follows.

mod build;
mod containers;
mod images;
mod init;
mod removal;
mod sandbox;
mod statuses;

//! The commands as a user sees them, in front of an agent made of collections.

mod actions;
mod config;
mod events;
mod events_pleg;
mod fixture;
mod get;
mod images;
mod logs;
mod offline;
mod watch;

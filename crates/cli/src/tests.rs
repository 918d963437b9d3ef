//! The commands as a user sees them, in front of an agent made of collections.

mod actions;
mod completion;
mod config;
mod container;
mod cp;
mod events;
mod events_pleg;
mod fixture;
mod get;
mod images;
mod logs;
mod net;
mod offline;
mod sessions;
mod top;
mod watch;

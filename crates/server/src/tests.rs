//! The API as a client sees it: raw HTTP over a real unix socket, in front of a node made of
//! collections.

mod actions;
mod audit;
pub(crate) mod echo;
mod files;
pub(crate) mod fixture;
mod health;
mod lifecycle;
mod lists;
mod logs;
mod net;
mod sessions;
mod socket;
mod watches;
pub(crate) mod web_socket;

//! The API as a client sees it: raw HTTP over a real unix socket, in front of a node made of
//! collections.

mod actions;
mod audit;
mod files;
mod fixture;
mod health;
mod lifecycle;
mod lists;
mod logs;
mod net;
mod sessions;
mod socket;
mod watches;

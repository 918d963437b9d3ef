//! Whole sessions: requests through a real HTTP server, with a runtime that echoes.

mod client;
mod cut;
mod endings;
mod fixture;
mod front;
mod golden;
mod tokens;
mod websocket;

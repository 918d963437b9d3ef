//! Whole sessions: requests through a real HTTP server, with a runtime that echoes.

mod client;
mod fixture;
mod tokens;
mod websocket;

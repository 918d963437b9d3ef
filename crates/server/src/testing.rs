//! A node made of collections, its sessions, an audit log, and a client of WebSockets: for the tests of
//! the servers that show a node.

mod answers;
mod echo;
mod journal;
mod node;
mod web_socket;

pub use self::{
    echo::{Echoes, FakeSessions},
    journal::Journal,
    node::{FIRST, FakeNode, LogAnswer, phased_pod, pod},
    web_socket::{UPGRADE, WebSocket},
};

//! A node of a cluster: what goes between the agent and the API server.

pub mod auth;
pub mod events;
pub mod mirror;
pub mod node;
pub mod objects;
mod refusal;
pub mod source;
pub mod status;
#[cfg(test)]
mod test_objects;

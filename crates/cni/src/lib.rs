//! Networks of pods: CNI configurations, and a bridge of its own.
//!
//! [`network`] makes a [`PodNetwork`]. Whether there is a CNI configuration is looked up anew for each
//! pod: with one, its plugins are run as libcni runs them; without any, pods are put on a bridge that
//! needs no other program. Which of the two a pod was added with is recorded, so that it is removed
//! the same way even if the configuration has come or gone since.

mod address;
mod attachment;
mod attachments;
mod bridge;
mod error;
mod network;
mod plugins;
mod request;
mod settings;

pub use address::{Cidr, CidrError};
pub use bridge::missing_sender_rules;
pub use error::NetworkError;
pub use network::{PodNetwork, network};
pub use request::{Dns, NetworkRequest, NetworkResult, PortMapping, Protocol};
pub use settings::{NetworkChoice, NetworkSettings};

//! Pod networks: CNI plugins, or the built-in bridge.
//!
//! [`network`] returns a [`PodNetwork`]. For each pod it checks whether there is a CNI
//! configuration: with one, its plugins are run as libcni runs them; without one, pods are attached
//! to a bridge that needs no other program. A record stores how a pod was added, so that it is
//! removed the same way even if the configuration has changed since.
//!
//! This crate never decides which pods exist, and never touches an interface that it did not
//! create.
//!
//! ```
//! use rubelet_cni::Cidr;
//!
//! let pods: Cidr = "10.244.1.0/24".parse().expect("an address range");
//! assert_eq!(pods.gateway().to_string(), "10.244.1.1");
//! assert!(pods.contains("10.244.1.7".parse().expect("an address")));
//! assert!("10.244.1.0/33".parse::<Cidr>().is_err());
//! ```

mod address;
mod attachment;
mod attachments;
mod blocking;
mod bridge;
mod error;
mod network;
mod plugins;
mod request;
mod settings;

pub use address::{Cidr, CidrError};
pub use bridge::{SysctlError, missing_sender_rules};
pub use error::{NetworkDamage, NetworkError, NetworkFailure, NetworkRefusal};
pub use network::{PodNetwork, network};
pub use plugins::PluginError;
pub use request::{Dns, NetworkRequest, NetworkResult, PortMapping, Protocol};
pub use settings::{NetworkChoice, NetworkSettings};

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
//! use rubelet_cni::{NetworkChoice, NetworkSettings, network};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let directory = tempfile::tempdir()?;
//! let pods = network(NetworkSettings {
//!     choice: NetworkChoice::Cni,
//!     cni_conf_dir: directory.path().join("net.d"),
//!     ..NetworkSettings::new(directory.path().join("state"))
//! });
//! // No pod can be added before there is a CNI configuration. The message is containerd's.
//! let error = pods.status().await.expect_err("the directory is missing");
//! assert!(error.to_string().contains("cni plugin not initialized"));
//! # Ok(())
//! # }
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

//! The CRI messages that create sandboxes and containers, in the kubelet's form, so that a node can
//! be migrated from the kubelet and back.

mod container;
pub mod env;
pub mod env_file;
pub mod expand;
pub mod labels;
mod mounts;
mod sandbox;
mod security;
#[cfg(test)]
mod tests;

pub use container::{ContainerInputs, container_config};
pub use mounts::{ContainerFiles, MountError, mounts};
pub use sandbox::{SandboxInputs, sandbox_config};
pub use security::{ImageUser, NonRootError, verify_non_root};

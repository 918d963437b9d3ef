//! The CRI messages that create sandboxes and containers, in the kubelet's form, so that a node can
//! be migrated from the kubelet and back.

mod container;
pub mod env;
pub mod env_file;
pub mod expand;
mod inputs;
pub mod labels;
mod mounts;
mod sandbox;
mod security;
#[cfg(test)]
mod tests;

pub use container::container_config;
pub use inputs::{ContainerInputs, ImageUser};
pub use mounts::{ContainerFiles, MountError, mounts};
pub use sandbox::{SandboxInputs, sandbox_config};
pub use security::{NonRootError, verify_non_root};

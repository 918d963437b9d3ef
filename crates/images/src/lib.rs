//! Images: pulling, unpacking, root file systems.
//!
//! [`ImageStore`] pulls images from registries, loads them from archives, lists
//! and removes them, and prepares the root file systems of containers. Below it:
//!
//! - [`mod@reference`], [`digest`], [`platform`], [`manifest`]: names and documents, without effects.
//! - [`hosts`]: which mirrors are tried before a registry.
//! - `registry`: the client of registries: connections, credentials, redirects, blobs.
//! - [`archive`]: reads tar streams, without effects; [`unpack`]: applies them to layer directories.
//! - `volumes`: the volumes of a container that its image declares.
//! - `store`: images and layers on disk, their users, and the removal of unused ones.
//!
//! On disk, below the root given to [`ImageStore::open`]:
//!
//! ```text
//! images/<config digest>.json   one record an image: names, layers, configuration
//! layers/<diff digest>/         a complete layer: fs/ for overlayfs, and its record
//! snapshots/<container>/        what a container wrote: fs/, work/, image-volumes/, the layers below
//! ingest/                       incomplete downloads; emptied at each start
//! ```
//!
//! A layer is created below `ingest`, flushed, and renamed; an image's record is written when all
//! its layers are committed. A crash at any instant leaves complete layers and images only.
//!
//! This crate never runs anything that an image contains, never mounts a root file system, and never
//! decides when to pull or to remove an image.
//!
//! ```
//! use rubelet_images::{ImageSettings, ImageStore, Reference};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let directory = tempfile::tempdir()?;
//! let store = ImageStore::open(directory.path(), ImageSettings::default()).await?;
//! assert!(store.list().is_empty());
//! assert!(store.find("nginx").is_none(), "it was not pulled");
//! assert_eq!("nginx".parse::<Reference>()?.to_string(), "docker.io/library/nginx:latest");
//! # Ok(())
//! # }
//! ```

mod active_pulls;
pub mod archive;
mod clock;
pub mod credentials;
pub mod digest;
mod disk_usage;
mod error;
pub mod hosts;
mod image;
mod load;
pub mod manifest;
pub mod platform;
mod pull;
pub mod reference;
mod registry;
mod settings;
mod store;
#[cfg(test)]
mod test_image;
#[cfg(test)]
mod test_registry;
mod tree;
pub mod unpack;
mod volumes;

pub use credentials::Credentials;
pub use digest::Digest;
pub use disk_usage::DiskUsage;
pub use error::{LoadError, OpenError, PullError, PullErrorKind, StoreError};
pub use image::{Image, ImageDetails, ImageId};
pub use load::{LoadRequest, LoadedImage};
pub use platform::{Platform, PlatformError};
pub use pull::PullRequest;
pub use reference::Reference;
pub use settings::{ImageSettings, Limits, Proxy};
pub use store::{IdMappings, ImageFsInfo, ImageStore, RemovalResult, RootfsLayers};
pub use volumes::VolumeCopy;

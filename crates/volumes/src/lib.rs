//! The directory of a pod: its volumes and generated files. All functions that access the disk
//! block, and may be repeated after a crash at any point.
//!
//! - [`dirs`]: paths, exactly as the kubelet lays them out.
//! - [`mod@prepare`]: creates the volumes; [`empty_dir`], [`host_path`], [`ownership`],
//!   [`sub_path`], and those whose files come from objects of the API server or from the pod
//!   itself.
//! - [`mod@cleanup`]: removes all of it, and nothing else.
//! - [`mod@measured`]: the volumes whose space is measured.
//! - [`termination_log`], [`etc_hosts`]: files that are mounted into containers.
//! - [`dns`], [`hostname`]: the sandbox's DNS settings and hostname; pure.
//!
//! This crate never calls the API server or the runtime, never decides when a pod's directory is
//! prepared or removed, and never removes anything outside of it.
//!
//! ```
//! use std::path::Path;
//!
//! use rubelet_base::PodUid;
//! use rubelet_volumes::dirs::PodDirs;
//!
//! let dirs = PodDirs::new(Path::new("/var/lib/kubelet"), &PodUid::from("u1")).expect("a file name");
//! assert_eq!(dirs.volumes(), Path::new("/var/lib/kubelet/pods/u1/volumes"));
//! assert!(PodDirs::new(Path::new("/var/lib/kubelet"), &PodUid::from("..")).is_err());
//! ```

mod atomic_writer;
pub mod cleanup;
mod directory;
pub mod dirs;
pub mod dns;
pub mod empty_dir;
pub mod env_file;
pub mod etc_hosts;
pub mod host_path;
pub mod hostname;
pub mod measured;
mod observe;
pub mod ownership;
mod payload;
pub mod prepare;
mod projection;
mod remove;
mod settings;
pub mod sub_path;
pub mod termination_log;

#[cfg(test)]
mod test_support;

pub use atomic_writer::WriteError;
pub use cleanup::{CleanupError, cleanup, orphans, remove_volumes};
pub use dirs::{PodDirs, UnsafeName};
pub use dns::{DnsInputs, DnsSettings, DnsWarning, PodDns, pod_dns};
pub use hostname::{HostnameError, PodHostname, pod_hostname};
pub use measured::{MeasuredVolume, measured};
pub use observe::{VolumeEvent, VolumeObserver};
pub use payload::PayloadError;
pub use prepare::{MountedVolumes, VolumeError, prepare, refresh};
pub use projection::ProjectionError;
pub use settings::{VolumeQuotas, VolumeSettings};

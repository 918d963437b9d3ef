//! The folder of a pod: its volumes and the files that are generated for it. All functions that
//! touch the disk block, and may be run again after a crash at any point.
//!
//! - [`dirs`]: what is where, exactly as the kubelet lays it out.
//! - [`prepare`]: makes the volumes; [`empty_dir`], [`host_path`], [`ownership`], [`sub_path`], and those
//!   whose files come from objects of the API server or from the pod itself.
//! - [`cleanup`]: takes it all away again, and only that.
//! - [`termination_log`], [`etc_hosts`]: files that are mounted into containers.
//! - [`dns`], [`hostname`]: what the sandbox is told; pure.

mod atomic_writer;
pub mod cleanup;
pub mod dirs;
pub mod dns;
pub mod empty_dir;
pub mod env_file;
pub mod etc_hosts;
mod folder;
pub mod host_path;
pub mod hostname;
pub mod ownership;
mod payload;
pub mod prepare;
mod projection;
mod remove;
pub mod sub_path;
pub mod termination_log;

#[cfg(test)]
mod test_support;

pub use atomic_writer::WriteError;
pub use cleanup::{CleanupError, cleanup, orphans, remove_volumes};
pub use dirs::{PodDirs, UnsafeName};
pub use dns::{DnsInputs, DnsSettings, DnsWarning, PodDns, pod_dns};
pub use hostname::{HostnameError, PodHostname, pod_hostname};
pub use payload::PayloadError;
pub use prepare::{MountedVolumes, VolumeError, VolumeSettings, prepare, refresh};
pub use projection::ProjectionError;

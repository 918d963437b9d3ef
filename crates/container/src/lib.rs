//! Starts containers from OCI specifications, as runc does: the mechanism of the embedded runtime,
//! without policy.
//!
//! Call it only from a process with a single thread, the shim: [`launch`] and [`exec`] fork, and
//! the child allocates memory.
//!
//! - [`make_namespaces`] creates the namespaces that the containers of a pod share.
//! - [`launch`] forks a container's init and returns at once. The init sets itself up, reports by
//!   [`ChildReports`], and waits at a [`StartBarrier`] until it may execute its program.
//! - [`exec`] does the same for a process that joins a running container.
//! - [`sealed_executable`] protects the program file that all of these processes execute at first.
//!
//! Needs Linux 5.12: `mount_setattr`, `openat2`, `close_range` and the file-descriptor based mounts.
//!
//! ```no_run
//! use rubelet_container::{LaunchError, NamespaceOptions, make_namespaces};
//!
//! let wanted = NamespaceOptions {
//!     net: true,
//!     ipc: true,
//!     uts: true,
//!     hostname: "web".to_owned(),
//!     ..NamespaceOptions::default()
//! };
//! let namespaces = make_namespaces(&wanted)?;
//! // What a container of this pod joins.
//! assert!(namespaces.joined().net.is_some());
//! # Ok::<(), LaunchError>(())
//! ```

mod capabilities;
mod dev;
mod error;
mod exec;
mod filesystem;
mod ids;
mod in_root;
mod init;
mod launch;
mod mount_options;
mod namespaces;
mod overlay;
mod plan;
mod proc;
mod process_setup;
mod program;
mod report;
mod rlimits;
mod rootfs;
mod sealed;
mod stdio;
mod step;
mod sys;

pub use error::LaunchError;
pub use exec::{ExecLaunch, exec};
pub use launch::{Launch, Launching, Stdio, launch};
pub use namespaces::{
    IdMappings, JoinedNamespaces, NamespaceOptions, PauseProcess, PodNamespaces, make_namespaces,
};
pub use report::{ChildReport, ChildReports, StartBarrier, open_barrier, read_report};
pub use rootfs::{Overlay, RootfsSource};
pub use sealed::sealed_executable;
pub use stdio::Console;

//! The OCI runtime specification's and image configuration's types: a subset that Rubelet writes
//! and executes, in the JSON form that `runc` and `crun` read. Unknown fields are ignored.
//!
//! This crate reads and writes no files, and runs nothing: `rubelet-container` does.
//!
//! ```
//! use rubelet_oci::{Spec, VERSION};
//!
//! let text = r#"{"ociVersion": "1.1.0", "root": {"path": "rootfs", "readonly": true}}"#;
//! let spec: Spec = serde_json::from_str(text).expect("a config.json");
//! assert_eq!(spec.oci_version, VERSION);
//! assert!(spec.root.readonly);
//! ```

mod capability;
pub mod image;
mod linux;
mod nullable;
mod process;
mod resources;
mod seccomp;
mod spec;

pub use capability::CAPABILITIES;
pub use linux::{Device, IdMapping, IdMappings, Linux, Namespace, NamespaceKind};
pub use process::{Capabilities, ConsoleSize, Process, Rlimit, User};
pub use resources::{Cpu, DeviceKind, DeviceRule, HugepageLimit, LinuxResources, Memory, Pids};
pub use seccomp::{Action, Architecture, ArgRule, Operator, Seccomp, SyscallRule};
pub use spec::{LOWER_DIR, Mount, NO_SYMLINKS, Root, SUB_PATH, Spec};

/// The version of the runtime specification that [`Spec`] implements: the first one with ID
/// mappings of mounts and recursive read-only mounts.
pub const VERSION: &str = "1.1.0";

//! The OCI runtime specification's and image configuration's types: a subset that Rubelet writes
//! and executes, in the JSON form that `runc` and `crun` read. Unknown fields are ignored.

mod capability;
pub mod image;
mod linux;
mod nullable;
mod process;
mod resources;
mod seccomp;
mod spec;

pub use capability::CAPABILITIES;
pub use linux::{Device, DeviceKind, IdMapping, Linux, Namespace, NamespaceKind};
pub use process::{Capabilities, ConsoleSize, Process, Rlimit, User};
pub use resources::{Cpu, DeviceRule, HugepageLimit, LinuxResources, Memory, Pids};
pub use seccomp::{Action, Architecture, ArgRule, Operator, Seccomp, SyscallRule};
pub use spec::{LOWER_DIR, Mount, NO_SYMLINKS, Root, SUB_PATH, Spec};

/// The version of the runtime specification that [`Spec`] is written in: the first one with mounts'
/// own ID mappings and recursive read-only mounts.
pub const VERSION: &str = "1.1.0";

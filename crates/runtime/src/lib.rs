//! The embedded container runtime: the CRI's services on the machine itself.
//!
//! [`EmbeddedRuntime`] holds a table of sandboxes and containers. Each has its record, which is the
//! truth about it in memory and on disk, and locks of its own, so that no object waits for another.
//! A pod's processes belong to its shim, one process per sandbox, which goes on when this one ends:
//!
//! - `sandbox`, `container`: the objects, and one file for each call on them. What is decided comes
//!   from `rubelet_runtime_plan`; here it is done, and undone when a step fails.
//! - `link`: the connection to a shim, one task each. What it reports is taken down at once.
//! - `events`: tells subscribers. `kept`: records on disk. `table`: who is there, and the names.
//! - `recover`: what the start finds: pods that run are adopted, what belongs to nobody is removed.
//! - [`doctor`]: what is wrong with the machine.
//!
//! A call that changes something is a task of its own and ends even if its caller goes away. Short
//! blocking work goes to a few threads; work on paths that are not ours may hang and takes no turn.

mod about;
mod apparmor;
mod cdi;
mod clock;
mod container;
pub mod doctor;
mod engine;
mod events;
mod facts;
mod fault;
mod handler;
mod host_devices;
mod host_paths;
mod identifier;
mod image_service;
mod kept;
mod layout;
mod link;
mod mount_sources;
mod output;
mod ownership;
mod pod_files;
mod recover;
mod runtime;
mod sandbox;
mod service;
mod settings;
mod stats;
mod table;

pub use ownership::OwnershipError;
pub use runtime::{EmbeddedRuntime, StartError, StoredImages};
pub use settings::{CgroupDriver, RuntimeSettings};

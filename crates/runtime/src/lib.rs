//! The embedded container runtime: implements the CRI services on this machine, without containerd.
//!
//! [`EmbeddedRuntime`] holds a table of sandboxes and containers. Each has a record, in memory and
//! on disk, and locks of its own, so that no object waits for another. A pod's processes belong to
//! its shim, one process per sandbox, which keeps running when this process exits:
//!
//! - `sandbox`, `container`: the objects, and one file for each call on them. Decisions come from
//!   `rubelet_runtime_plan`; here they are carried out, and rolled back when a step fails.
//! - `sessions`: exec, attach and port-forward. Where their bytes go is the business of
//!   `rubelet_streaming`.
//! - `link`: the connection to a shim, one task each. Its reports are recorded at once.
//! - `events`: container events for subscribers. `records`: records on disk. `table`: all sandboxes
//!   and containers, and the reserved names.
//! - `recover`: recovery at the start: adopts running pods and removes leftovers.
//! - [`doctor`]: what is wrong with the machine.
//!
//! A call that changes something is a task of its own and completes even if its caller goes away.
//! Short blocking operations share a few threads; operations on paths outside of the runtime's
//! directories may hang, and are not counted among them.
//!
//! Never decides whether a pod runs: it carries out the calls of the CRI, from this agent or from another one.
//!
//! ```no_run
//! use rubelet_runtime::{RuntimeSettings, doctor};
//!
//! let settings = RuntimeSettings::new("/var/lib/rubelet/runtime", "/run/rubelet/runtime");
//! for finding in doctor::check(&settings) {
//!     println!("{}: {}", finding.what, finding.remedy);
//! }
//! ```

mod apparmor;
mod blocking;
mod cdi;
mod clock;
mod container;
pub mod doctor;
mod engine;
mod error;
mod events;
mod facts;
mod handler;
mod host_devices;
mod host_paths;
mod identifier;
mod image_service;
mod layout;
mod link;
mod mount_sources;
mod output;
mod ownership;
mod pod_files;
mod rates;
mod records;
mod recover;
mod runtime;
mod runtime_status;
mod sandbox;
mod service;
mod sessions;
mod settings;
mod stats;
mod table;
mod unattended;

pub use ownership::OwnershipError;
pub use rubelet_images::VolumeCopy;
pub use runtime::{EmbeddedRuntime, StartError, StoredImages};
pub use settings::RuntimeSettings;
pub use unattended::unattended_pods;

//! The embedded container runtime: implements the CRI services on this machine, without containerd.
//!
//! [`EmbeddedRuntime`] holds a table of sandboxes and containers. Each has a record, in memory and
//! on disk, and locks of its own, so that no object waits for another. A pod's processes belong to
//! its shim, one process per sandbox, which keeps running when this process exits:
//!
//! - `sandbox`, `container`: the objects, and one file for each call on them. Decisions come from
//!   `rubelet_runtime_plan`; here they are carried out, and rolled back when a step fails.
//! - `sessions`: exec, attach and port-forward. `rubelet_streaming` connects them to clients.
//! - `shim_client`: the connections to shims, one task each. Their events are recorded at once.
//! - `events`: container events for subscribers. `records`: records on disk. `table`: all sandboxes
//!   and containers, and the reserved names.
//! - `recover`: recovery at the start: adopts running pods and removes leftovers.
//! - [`doctor`]: checks whether the machine can run pods.
//!
//! A call that changes state runs as its own task and completes even if its caller goes away.
//! Short blocking operations share a few threads; operations on paths outside of the runtime's
//! directories may hang, and are not counted among them.
//!
//! The runtime never decides whether a pod runs: it carries out the CRI calls of this or another
//! agent.
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
mod executable;
mod facts;
mod handler;
mod host_devices;
mod host_paths;
mod identifier;
mod image_service;
mod layout;
mod live_shim;
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
mod shim_client;
mod stats;
mod table;
mod unattended;

pub use ownership::OwnershipError;
pub use rubelet_images::VolumeCopy;
pub use runtime::{EmbeddedRuntime, StartError, StoredImages};
pub use settings::RuntimeSettings;
pub use unattended::unattended_pods;

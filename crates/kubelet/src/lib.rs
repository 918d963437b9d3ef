//! The kubelet's own work: pod sources become tasks; tasks compare the desired with the observed
//! state, and act. Each part observes, plans (in `pod-plan`, or in a `decide` module) and applies.
//!
//! | task | in | out |
//! |---|---|---|
//! | `pods::PodTable` | desired pods of the sources, relists | starts, updates and ends pod tasks |
//! | `pod_task::PodTask`, one per pod | control, observations | calls to the runtime, status on the pod board |
//! | `PlegTask` of the crate `pleg` | marks, the runtime | observations, relists |
//! | [`prober::ProberTask`] | probes that plans want to run | attempts, their outcomes, events |
//! | [`runtime_watch::watch_runtime`] | the runtime's status | whether pods can be worked on |
//! | [`image_collection`] | the disk, images, containers, pods | removed images |
//! | [`log_rotation`] | statuses of running containers, sizes of logs | rotated logs |
//! | [`records::RecordWriter`] | status and history | one small file per pod |
//!
//! What others show of pods is on the boards of `node-state`. [`agent`] puts the parts together. A part that stands by
//! itself, the registry logins that all pods of a node may use:
//!
//! ```
//! use rubelet_kubelet::node_logins::NodeLogins;
//!
//! let root_dir = tempfile::tempdir().expect("a directory");
//! let config = r#"{"auths": {"registry.example": {"username": "ci", "password": "s3cret"}}}"#;
//! std::fs::write(root_dir.path().join("config.json"), config).expect("a file");
//! let logins = NodeLogins::of_kubelet(root_dir.path(), None).read();
//! assert_eq!(logins.lookup("registry.example/app:2")[0].username, "ci");
//! assert!(logins.lookup("other.example/app:2").is_empty());
//! ```

pub mod agent;
mod drain;
pub mod host;
mod host_ports;
pub mod image_access;
pub mod image_collection;
pub mod images;
pub mod log_rotation;
pub mod node_logins;
pub mod pod_host;
mod pod_task;
mod pods;
pub mod prober;
mod quarantine;
pub mod records;
mod releases;
pub mod runtime_watch;
mod start_failure;
mod throttle;

#[cfg(test)]
mod tests;

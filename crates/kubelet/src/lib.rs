//! The core of the kubelet: each desired pod has a task, which compares the desired with the
//! observed state, and acts. Each part observes, plans (in `pod-plan`, or in a `decide` module) and
//! applies.
//!
//! | task | in | out |
//! |---|---|---|
//! | `pods::PodTable` | desired pods of the sources, relists | starts, updates and ends pod tasks |
//! | `pod_task::PodTask`, one per pod | control, observations | calls to the runtime, status on the pod board |
//! | `PlegTask` of the crate `pleg` | marks, the runtime | observations, relists |
//! | [`rubelet_probes::ProberTask`] | probes of running containers | attempts, their outcomes, events |
//! | [`runtime_watch::watch_runtime`] | the runtime's status | whether the runtime is ready |
//! | [`eviction`] | memory, file systems, processes, pods | pressure, evicted pods |
//! | [`local_storage`] | file systems, pods with limits | evicted pods |
//! | [`image_collection`] | the disk, images, containers, pods | removed images |
//! | [`node_shutdown`] | announcements of shutdowns of the machine, pods | whether the node shuts down, ended pods |
//! | [`node_allocatable`] | the runtime's cgroup driver | limits of all pods together, and of what the reservations are for |
//! | [`log_rotation`] | statuses of running containers, sizes of logs | rotated logs |
//! | [`oom_watch`] | the log of the kernel | events of the node |
//! | [`group_kill`] | running containers, changes of their cgroups | `memory.oom.group` |
//! | [`records::RecordWriter`] | status and history | one small file per pod |
//!
//! Other crates read the state of pods from the boards of `node-state`. [`agent`] assembles the
//! parts.
//!
//! This crate never opens a connection to a runtime or to the API server, and listens on nothing: it
//! sees the traits of `cri` and `node-state`, and others supply what is behind them. One of its
//! parts, on a simulated runtime:
//!
//! ```
//! use std::time::Duration;
//!
//! use rubelet_kubelet::runtime_watch::watch_runtime;
//! use rubelet_node_state::{
//!     clock::Clock, heartbeat::Heartbeat, metrics::NodeMetrics, runtime_state::RuntimeState,
//! };
//! use rubelet_pleg::{PID_QUERY_IDLE, PlegSettings, PlegTask};
//! use rubelet_sim::Sim;
//! use tokio::sync::watch;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let settings = PlegSettings {
//!     relist_period: Duration::from_secs(1),
//!     events: true,
//!     pid_query_idle: PID_QUERY_IDLE,
//! };
//! let (heartbeat, clock) = (Heartbeat::new(), Clock::system());
//! let (sim, metrics) = (Sim::new(), NodeMetrics::new());
//! let (_, pleg) = PlegTask::new(sim.runtime(), settings, None, heartbeat, clock, metrics);
//! let (sender, mut state) = watch::channel(RuntimeState::default());
//! tokio::spawn(watch_runtime(sim.runtime(), "unix:///sim".into(), sender, pleg));
//! state.changed().await.expect("the runtime is queried");
//! assert!(state.borrow().is_ready());
//! assert_eq!(&*state.borrow().name, "rubelet-sim");
//! # }
//! ```

pub mod agent;
mod drain;
pub mod eviction;
pub mod group_kill;
pub mod host;
mod host_ports;
pub mod image_collection;
pub mod local_storage;
pub mod log_rotation;
pub mod node_allocatable;
pub mod node_shutdown;
pub mod oom_watch;
pub mod pod_host;
mod pod_sources;
mod pod_task;
mod pods;
mod quarantine;
pub mod records;
mod releases;
pub mod runtime_watch;
mod slow_end;

pub use pod_sources::PodSources;

#[cfg(test)]
mod tests;

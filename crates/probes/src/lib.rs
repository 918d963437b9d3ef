//! Probes of containers: their schedule, their attempts and their results.
//!
//! [`ProberTask`] is one task for the probes of all pods, with one timer. A pod's task sets the
//! probes to run ([`ProberHandle::set`]); the task runs them in time and publishes their results
//! ([`ProberHandle::outcomes`]). `pod-plan` decides what a result means for a container: this crate never stops or
//! restarts one, and never changes a pod's status.
//!
//! [`Prober`] makes one attempt over the network, or runs an `httpGet` hook. Its messages are
//! identical to the kubelet's, because operators read them in events and search for them. An
//! attempt opens its own sockets, runs in the task that awaits it, and leaves nothing behind when
//! it is dropped. Every socket is reset after the complete response, so that neither this machine
//! nor the pod keeps one in TIME_WAIT.
//!
//! ```no_run
//! # async fn probe() {
//! use std::time::Duration;
//!
//! use rubelet_api::probe::{TargetPort, TcpSocket};
//! use rubelet_probes::{ProbeOutcome, Prober};
//!
//! let socket = TcpSocket { host: None, port: TargetPort::Number(6379) };
//! let report = Prober::new("1.36").tcp(&socket, "10.88.0.5", Duration::from_secs(1)).await;
//! if report.verdict != ProbeOutcome::Passed {
//!     eprintln!("Readiness probe failed: {}", report.output);
//! }
//! # }
//! ```

mod dial;
mod grpc;
mod http;
mod http2;
mod prober;
mod report;
mod scheduler;
mod socket;
mod stream;
mod target;
mod tcp;
mod tls;
mod words;

pub use prober::Prober;
pub use report::{MAX_OUTPUT, ProbeOutcome, ProbeReport};
pub use scheduler::{NetProbe, ProbeStatus, ProberHandle, ProberTask};
pub use words::quoted;

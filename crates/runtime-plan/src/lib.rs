//! The decisions of the embedded runtime: OCI specifications from CRI configurations, the calls
//! that are valid in each state, and the recovery after a restart. No effects and no clock.
//!
//! ```
//! use rubelet_runtime_plan::state::{
//!     ContainerCall, ContainerPhase, SandboxPhase, CallDecision, container,
//! };
//!
//! let ready = Some(SandboxPhase::Ready);
//! let start = |phase| container(ContainerCall::Start, "c1", Some(phase), ready);
//! assert_eq!(start(ContainerPhase::Created).expect("can start"), CallDecision::Proceed);
//! assert!(start(ContainerPhase::Running).is_err());
//! ```

pub mod capability;
pub mod cdi;
pub mod container_spec;
pub mod cri_status;
pub mod exec_spec;
pub mod host;
pub mod image_volumes;
pub mod namespaces;
pub mod profile;
pub mod record;
pub mod recovery;
mod refusal;
pub mod resources;
pub mod sandbox_spec;
pub mod seccomp;
pub mod session;
pub mod state;
pub mod stop_signal;
pub mod user;
pub mod userns;

pub use refusal::Refusal;

//! Pod lifecycle decisions: a snapshot goes in; steps, a status, the time of the next plan and the
//! reasons come out. No clock, no runtime, no files: `now` is an argument.
//!
//! - [`observed`]: the pod's sandboxes and containers as the last inspection found them.
//! - [`history`]: failed and successful attempts of this agent, and their back-offs.
//! - [`intents`]: requests of an operator beside the manifest.
//! - [`grace`]: deadlines of terminating containers.
//! - [`probe`]: the probes to run, and the results of their attempts.
//! - [`actions`]: the sandboxes and containers to stop and start (upstream's `computePodActions`).
//! - [`status`]: phase, conditions and container states.
//! - [`plan()`]: combines these: from a [`snapshot`] to [`step`]s.
//! - [`cri_config`]: the CRI messages that create sandboxes and containers.
//! - [`image`]: image pull policies. [`image_access`]: pods that may use an image on the node.
//! - [`transitions`]: the events to raise for a change of the status.
//!
//! A new pod gets a sandbox first:
//!
//! ```
//! use rubelet_api::{manifest, parse::{ParseContext, parse}, pod::PodSource};
//! use rubelet_pod_plan::{
//!     History, ObservedPod, OperatorIntents, PlanSettings, PodSnapshot, ProbeResults, Step,
//!     Target, plan,
//! };
//!
//! let text = "
//! apiVersion: v1
//! kind: Pod
//! metadata: {name: web}
//! spec: {containers: [{name: main, image: nginx}]}";
//! let now = jiff::Timestamp::UNIX_EPOCH;
//! let context = ParseContext {
//!     node_name: "node-1",
//!     source: PodSource::File,
//!     origin: "web.yaml",
//!     adopted_uid: None,
//!     now,
//! };
//! let raw = manifest::decode(text).pods.remove(0).expect("a v1 Pod");
//! let pod = parse(raw, &context).expect("a valid pod");
//!
//! let snapshot = PodSnapshot {
//!     pod: &pod,
//!     observed: &ObservedPod::default(),
//!     history: &History::default(),
//!     previous: None,
//!     target: Target::Run,
//!     settings: &PlanSettings::default(),
//!     probes: &ProbeResults::default(),
//!     intents: &OperatorIntents::default(),
//!     generation: 1,
//! };
//! let plan = plan(&snapshot, now);
//! assert!(matches!(plan.steps[..], [Step::CreateSandbox { attempt: 0 }]));
//! ```

pub mod actions;
pub mod cri_config;
pub mod definition;
pub mod grace;
pub mod history;
pub mod image;
pub mod image_access;
pub mod intents;
mod interrupted_start;
mod kernel_exit;
pub mod observed;
pub mod plan;
pub mod pod_ips;
mod precreate;
pub mod probe;
pub mod reason;
pub mod snapshot;
pub mod status;
pub mod step;
pub mod step_failure;
pub mod transitions;

pub use history::{History, VolumeState};
pub use intents::{Eviction, ExternalCondition, OperatorIntents};
pub use observed::{ContainerPhase, ObservedContainer, ObservedPod, ObservedSandbox, ProcessState};
pub use plan::plan;
pub use probe::{ProbeKind, ProbeResult, ProbeResults, ProbeTarget};
pub use reason::PlanReason;
pub use snapshot::{PlanSettings, PodSnapshot, Target};
pub use step::{PodPlan, Step};

use jiff::Timestamp;
use std::time::Duration;

/// `at` plus `by`; [`Timestamp::MAX`] on overflow.
#[must_use]
pub fn after(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;

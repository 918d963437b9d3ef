//! Pod lifecycle decisions: a snapshot goes in; steps, a status, the time of the next plan and the
//! reasons come out. No clock, no runtime, no files: `now` is an argument.
//!
//! - [`observed`]: what an inspection saw.
//! - [`history`]: what this agent tried and when it may try again.
//! - [`intents`]: what an operator requested beside the manifest.
//! - [`grace`]: how much time a container has to end.
//! - [`probe`]: which probes to run, and the results of their attempts.
//! - [`actions`]: which sandbox and containers to stop and start (upstream's `computePodActions`).
//! - [`status`]: phase, conditions and container states.
//! - [`plan()`]: puts these together: from a [`snapshot`] to [`step`]s.
//! - [`cri_config`]: the CRI messages that create sandboxes and containers.
//! - [`image`]: whether to pull. [`image_access`]: who may use what is present.
//! - [`transitions`]: what a change of status means to an operator: the events to raise.
//!
//! A pod that nothing runs of yet gets a sandbox first:
//!
//! ```
//! use rubelet_api::{manifest, parse::{ParseContext, parse}, pod::PodSource};
//! use rubelet_pod_plan::{
//!     History, Intents, ObservedPod, PlanSettings, PodSnapshot, ProbeResults, Step, Target, plan,
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
//!     intents: &Intents::default(),
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
pub mod snapshot;
pub mod status;
pub mod step;
pub mod transitions;
pub mod why;

pub use history::{History, VolumeState};
pub use intents::{Eviction, ExternalCondition, Intents};
pub use observed::{ContainerPhase, ObservedContainer, ObservedPod, ObservedSandbox, ProcessState};
pub use plan::plan;
pub use probe::{ProbeKind, ProbeResult, ProbeResults, ProbeTarget};
pub use snapshot::{PlanSettings, PodSnapshot, Target};
pub use step::{PodPlan, Step};
pub use why::Why;

use jiff::Timestamp;
use std::time::Duration;

/// `at` plus `by`; the end of time where that overflows.
#[must_use]
pub fn after(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;

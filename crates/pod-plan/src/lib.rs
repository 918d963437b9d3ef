//! Pod lifecycle decisions: a snapshot goes in; steps, status, the time of the next look and the
//! reasons come out. No clock, no runtime, no files: `now` is an argument.
//!
//! - [`observed`]: what an inspection saw.
//! - [`history`]: what this agent tried and when it may try again.
//! - [`intents`]: what an operator asked for beside the manifest.
//! - [`grace`]: how much time a container has to end.
//! - [`probe`]: which probes to try, and what their attempts amount to.
//! - [`actions`]: which sandbox and containers to stop and start (upstream's `computePodActions`).
//! - [`status`]: phase, conditions and container states.
//! - [`plan()`]: puts these together.
//! - [`cri_config`]: the messages from which a runtime makes sandboxes and containers.
//! - [`image`]: whether to pull. [`image_access`]: who may use what is present.
//! - [`transitions`]: what a change of status means to an operator: the events to raise.

pub mod actions;
mod ahead;
mod broken_off;
pub mod cri_config;
pub mod definition;
pub mod grace;
pub mod history;
pub mod image;
pub mod image_access;
pub mod intents;
pub mod observed;
pub mod plan;
pub mod pod_ips;
pub mod probe;
pub mod status;
pub mod transitions;
pub mod why;

pub use history::{History, VolumeState};
pub use intents::{EarlyEnd, ForeignCondition, Intents};
pub use observed::{ContainerPhase, ObservedContainer, ObservedPod, ObservedSandbox, Process};
pub use plan::{PlanSettings, PodPlan, PodSnapshot, Step, Target, plan};
pub use probe::{Outcome, ProbeKind, ProbeOutcomes, ProbeTarget};
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

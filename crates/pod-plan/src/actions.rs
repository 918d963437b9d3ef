//! The sandboxes and containers to stop and start: the rules of the kubelet's `computePodActions`
//! and `SyncPod`, on a snapshot.
//!
//! Two rules differ on purpose. Only containers of the current sandbox count as progress of the
//! init sequence, so that their records (and restart counts) need not be removed before a new
//! sandbox is created. And a container that was created but never started is started rather than
//! replaced, so that a crash of the agent between the two calls has no effect.

mod builder;
mod init;
mod kill;
mod precreate;
mod regular;
mod replace;
mod restart;
mod restart_all;
mod run;
mod sandbox;
mod start;
mod stop;

use jiff::Timestamp;
use rubelet_api::status::PodStatus;

pub(crate) use init::init_exit_code;
pub(crate) use restart::policy_of;
pub use restart::should_restart;
pub(crate) use restart::{restart_requested, restarts_all};
pub(crate) use stop::remove_volumes;

use crate::{
    intents::Eviction,
    reason::PlanReason,
    snapshot::{PodSnapshot, Target},
    step::Step,
};

/// The decision for one pod, before the status is generated from it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Actions {
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Reasons.
    pub why: Vec<PlanReason>,
    /// The earliest time at which the decision could change.
    pub wake_at: Option<Timestamp>,
    /// Why the pod is terminated before its containers exit: `activeDeadlineSeconds` or an
    /// eviction.
    pub pod_failure: Option<Eviction>,
    /// True if the newest sandbox is no longer usable.
    pub sandbox_unusable: bool,
    /// True if the sandbox is lost and the pod will not be started again.
    pub never_restarts: bool,
    /// True while all containers are being restarted in place.
    pub restarting_all: bool,
    /// True once nothing is left of a pod that is being removed.
    pub finished: bool,
}

impl Actions {
    /// True if the pod has terminated with this status, or is being terminated as `Failed`: it is
    /// not probed then.
    pub(crate) fn ends_the_pod(&self, status: &PodStatus) -> bool {
        status.phase.is_terminal() || self.pod_failure.is_some()
    }

    fn wake_by(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }
}

/// Decides what to do for one pod.
#[must_use]
pub fn decide(snapshot: &PodSnapshot<'_>, now: Timestamp) -> Actions {
    match snapshot.target {
        Target::Run => run::decide(snapshot, now),
        Target::Remove { grace } => stop::decide(snapshot, grace, now),
    }
}

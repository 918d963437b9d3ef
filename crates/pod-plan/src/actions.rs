//! Which sandbox and containers to stop and start: the rules of the kubelet's `computePodActions`
//! and `SyncPod`, on a snapshot.
//!
//! Two rules differ on purpose. Only containers of the current sandbox count as progress of the
//! init sequence, so that their records (and restart counts) need not be removed before a new
//! sandbox is made. And a container that was created but never started is started rather than
//! replaced, so that an agent which died between the two calls leaves no trace.

mod draft;
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
pub(crate) use restart::{is_asked, restarts_all};
pub use restart::{policy_of, should_restart};
pub(crate) use stop::remove_volumes;

use crate::{
    intents::Eviction,
    snapshot::{PodSnapshot, Target},
    step::Step,
    why::Why,
};

/// The decision, before it is turned into a status.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Actions {
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Reasons.
    pub why: Vec<Why>,
    /// The earliest time at which the decision could be another one.
    pub wake_at: Option<Timestamp>,
    /// Why the pod ends before its containers do: `activeDeadlineSeconds`, or an eviction.
    pub early_end: Option<Eviction>,
    /// True if the newest sandbox can't be used any more.
    pub sandbox_unusable: bool,
    /// True if the sandbox is lost and the pod is not started again.
    pub given_up: bool,
    /// True while all containers are being restarted in place.
    pub restarting_all: bool,
    /// True when nothing is left of a pod that had to be removed.
    pub finished: bool,
}

impl Actions {
    /// Whether the pod is over with this status, or ends as `Failed`: nothing of it is probed then.
    pub(crate) fn ends_the_pod(&self, status: &PodStatus) -> bool {
        status.phase.is_terminal() || self.early_end.is_some()
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

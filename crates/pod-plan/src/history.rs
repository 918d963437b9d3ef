//! Past attempts of this agent for a pod, their failures and back-offs. Owned by the pod's task and
//! kept across restarts of the agent.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use rubelet_api::container::Container;
use rubelet_base::{ContainerId, PodUid};
use serde::{Deserialize, Serialize};

use crate::{
    after,
    observed::{ContainerPhase, Exit, ObservedPod},
    step_failure::{StepFailure, backoff_end},
};

/// First crash back-off, and its growth by doubling (kubelet: 10 s to 300 s).
pub(crate) const CRASH_INITIAL: Duration = Duration::from_secs(10);
/// A container that ran longer than this starts again with the first back-off.
pub const CRASH_RESET: Duration = Duration::from_secs(600);
/// First and longest back-off after a failed image pull.
pub(crate) const PULL_INITIAL: Duration = Duration::from_secs(10);
/// Longest back-off after a failed image pull.
pub(crate) const PULL_MAX: Duration = Duration::from_secs(300);
/// First back-off after a step failed for another reason; doubles up to [`RETRY_MAX`].
pub const RETRY_INITIAL: Duration = Duration::from_secs(1);
/// Reason of a sandbox that can't be created because the runtime's network is not ready; retried
/// every second.
pub const NETWORK_NOT_READY: &str = "NetworkNotReady";
/// Reason of a sandbox that waits for a host port that another pod holds.
pub const HOST_PORT_HELD: &str = "HostPortHeld";
/// Longest back-off after a step failed.
pub const RETRY_MAX: Duration = Duration::from_secs(10);

/// Past attempts for one pod.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// By container name.
    pub containers: BTreeMap<Box<str>, ContainerHistory>,
    /// The last failure to create or prepare the sandbox; cleared by success.
    pub sandbox: Option<StepFailure>,
    /// The last failure to stop or remove something; cleared by success.
    pub teardown: Option<StepFailure>,
    /// `metadata.attempt` of the last requested sandbox. The attempt is part of the name, which the
    /// runtime reserves while the sandbox exists: a sandbox that was created when the agent died,
    /// and that an incomplete list does not contain, can't be created a second time.
    #[serde(default)]
    pub sandbox_attempt: u32,
    /// State of the pod's volumes on the host.
    #[serde(default, skip_serializing_if = "VolumeState::is_unknown")]
    pub volumes: VolumeState,
    /// The pod that this one replaced when its manifest was edited or written again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<ReplacedPod>,
}

/// A pod that was terminated so that another one of its name could start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplacedPod {
    /// Its UID.
    pub uid: PodUid,
    /// When its removal was complete.
    pub at: Timestamp,
}

/// State of a pod's volumes on the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumeState {
    /// Unknown: another kubelet created them, or the record is lost.
    #[default]
    Unknown,
    /// Created, perhaps not all.
    Made,
    /// Removed after the pod terminated.
    Removed,
}

impl VolumeState {
    fn is_unknown(&self) -> bool {
        *self == Self::Unknown
    }
}

/// Past attempts for one container.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContainerHistory {
    /// The last failed start; cleared by a successful one.
    pub failure: Option<StepFailure>,
    /// The crash back-off.
    pub crash: Option<CrashBackoff>,
    /// The instance whose postStart hook has not ended yet.
    #[serde(default)]
    pub post_start: Option<ContainerId>,
    /// The instance that the agent stopped last.
    #[serde(default)]
    pub killed: Option<StoppedInstance>,
    /// The instance whose successor the agent precreated or tried to precreate.
    #[serde(skip)]
    pub precreated_after: Option<ContainerId>,
    /// The precreated instance whose start counts in the back-off: from then on it is like any
    /// other created container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead_counted: Option<ContainerId>,
    /// The last terminations, newest first; at most [`TERMINATIONS_KEPT`].
    #[serde(default)]
    pub ends: Vec<Termination>,
}

/// Number of terminations kept for each container.
pub const TERMINATIONS_KEPT: usize = 5;

/// An instance that the agent stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoppedInstance {
    /// Its identifier.
    pub id: ContainerId,
    /// The reason.
    pub why: Box<str>,
    /// When the stop began.
    pub at: Timestamp,
}

/// The termination of an instance of a container, for the explanation of its restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Termination {
    /// The instance.
    pub id: ContainerId,
    /// Its number, from 0.
    pub restart_count: u32,
    /// When it started; `None` if it never ran.
    pub started_at: Option<Timestamp>,
    /// When it exited.
    pub finished_at: Timestamp,
    /// Exit code; 128 + signal for signals.
    pub exit_code: i32,
    /// The runtime's reason, such as `OOMKilled`.
    pub reason: Box<str>,
    /// The termination message.
    #[serde(default)]
    pub message: Box<str>,
    /// Why the agent stopped it; empty if it exited on its own.
    #[serde(default)]
    pub stopped_because: Box<str>,
    /// The last lines of its log.
    #[serde(default)]
    pub log: Vec<Box<str>>,
}

/// The crash back-off of one container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrashBackoff {
    /// Back-off before the next start, counted from the last exit.
    pub delay: Duration,
    /// When a start was last allowed.
    pub last_start: Timestamp,
    /// Key of the definition that was started; another definition starts without back-off.
    pub key: Box<str>,
}

/// The key of a container's definition; a change of it resets the back-off.
#[must_use]
pub(crate) fn backoff_key(container: &Container) -> Box<str> {
    container
        .definition
        .as_ref()
        .map_or_else(|| container.hash.clone(), |hash| hash.0.clone())
}

impl History {
    /// End and delay of the crash back-off of a container that exited at `finished_at`; `None` if
    /// it may start now.
    #[must_use]
    pub(crate) fn crash_wait(
        &self,
        container: &Container,
        finished_at: Timestamp,
        now: Timestamp,
    ) -> Option<(Timestamp, Duration)> {
        let entry = self.containers.get(&container.name)?.crash.as_ref()?;
        // Edited, or ran long enough: this crash counts as the first. As in the kubelet's
        // `flowcontrol.Backoff`, the age counts from the permission to start, not from the start
        // itself: the time of a pull in between is part of it.
        if entry.key != backoff_key(container) || after(entry.last_start, CRASH_RESET) < finished_at
        {
            return None;
        }
        backoff_end(finished_at, entry.delay, now).map(|until| (until, entry.delay))
    }

    /// Notes that a container which exited at `finished_at` is restarted now, with back-offs of at
    /// most `max`.
    pub fn note_restart(
        &mut self,
        container: &Container,
        finished_at: Timestamp,
        now: Timestamp,
        max: Duration,
    ) {
        let key = backoff_key(container);
        let history = self.containers.entry(container.name.clone()).or_default();
        let fresh = history.crash.as_ref().is_none_or(|entry| {
            entry.key != key || after(entry.last_start, CRASH_RESET) < finished_at
        });
        let delay = match &history.crash {
            Some(entry) if !fresh => entry.delay.saturating_mul(2).min(max),
            _ => CRASH_INITIAL.min(max),
        };
        history.crash = Some(CrashBackoff {
            delay,
            last_start: now,
            key,
        });
    }

    /// Notes that a start failed. Image pulls back off from 10 s to 300 s, everything else from
    /// 1 s to 10 s.
    pub fn note_start_failed(
        &mut self,
        container: &Container,
        reason: &str,
        message: &str,
        now: Timestamp,
    ) {
        let key = backoff_key(container);
        let history = self.containers.entry(container.name.clone()).or_default();
        // A start that gets past the pull and then fails otherwise has made progress: another
        // reason begins with the first back-off.
        let (initial, max) = if crate::image::is_pull_failure(reason) {
            (PULL_INITIAL, PULL_MAX)
        } else {
            (RETRY_INITIAL, RETRY_MAX)
        };
        let previous = history
            .failure
            .take()
            .filter(|old| old.key == key && *old.reason == *reason);
        history.failure = Some(failure(
            previous.as_ref(),
            reason,
            message,
            now,
            initial,
            max,
            key,
        ));
    }

    /// True if the postStart hook of this instance has not ended yet.
    #[must_use]
    pub fn post_start_pending(&self, name: &str, id: &ContainerId) -> bool {
        let history = self.containers.get(name);
        history.is_some_and(|history| history.post_start.as_ref() == Some(id))
    }

    /// True if the agent precreated the successor of this instance, or tried to.
    #[must_use]
    pub(crate) fn tried_precreate(&self, name: &str, before: &ContainerId) -> bool {
        let history = self.containers.get(name);
        history.is_some_and(|history| history.precreated_after.as_ref() == Some(before))
    }

    /// Notes that the successor of this instance is being precreated.
    pub fn note_precreate(&mut self, name: &str, before: &ContainerId) {
        let history = self.containers.entry(name.into()).or_default();
        history.precreated_after = Some(before.clone());
    }

    /// True if this instance was precreated and its start counts in the back-off.
    #[must_use]
    pub(crate) fn precreated_counts(&self, name: &str, id: &ContainerId) -> bool {
        let history = self.containers.get(name);
        history.is_some_and(|history| history.ahead_counted.as_ref() == Some(id))
    }

    /// Notes that the start of a precreated instance counts in the back-off from now on.
    pub fn count_precreated(&mut self, name: &str, id: &ContainerId) {
        let history = self.containers.entry(name.into()).or_default();
        history.ahead_counted = Some(id.clone());
    }

    /// Notes why an instance is stopped; the first of several reasons counts.
    pub fn note_killed(&mut self, name: &str, id: &ContainerId, why: &str, now: Timestamp) {
        let history = self.containers.entry(name.into()).or_default();
        // A stop is repeated after a failure, and shortened while it runs, for other reasons than
        // the one that began it.
        let known = history.killed.as_ref();
        if known.is_none_or(|killed| killed.id != *id) {
            history.killed = Some(StoppedInstance {
                id: id.clone(),
                why: why.into(),
                at: now,
            });
        }
    }

    /// Why the agent stopped an instance that exited at `finished_at`; empty if it exited on its
    /// own.
    #[must_use]
    pub fn stopped_because(&self, name: &str, id: &ContainerId, finished_at: Timestamp) -> &str {
        let history = self.containers.get(name);
        let killed = history.and_then(|history| history.killed.as_ref());
        // The agent may decide to stop an instance whose exit it has not observed yet: that one
        // exited before the stop, and on its own.
        killed
            .filter(|killed| killed.id == *id && killed.at <= finished_at)
            .map_or("", |killed| &killed.why)
    }

    /// True if [`History::note_termination`] would add the termination of this instance.
    #[must_use]
    pub fn lacks_termination(&self, name: &str, id: &ContainerId, finished_at: Timestamp) -> bool {
        let Some(history) = self.containers.get(name) else {
            return true;
        };
        let ends = &history.ends;
        // The runtime can have more records than are kept here. Without this comparison an older
        // one would be added, and truncated again, with each observation.
        let oldest = ends.get(TERMINATIONS_KEPT - 1).map(|end| end.finished_at);
        ends.iter().all(|known| known.id != *id) && oldest.is_none_or(|oldest| oldest < finished_at)
    }

    /// Corrects the reason of a recorded termination. One that is known as an OOM kill stays one: the runtime may not know.
    pub fn correct_termination(&mut self, name: &str, id: &ContainerId, reason: &str) {
        let history = self.containers.get_mut(name);
        let ends = history.into_iter().flat_map(|history| &mut history.ends);
        for end in ends.filter(|end| end.id == *id && *end.reason != *reason) {
            if &*end.reason != Exit::OOM_KILLED {
                end.reason = reason.into();
            }
        }
    }

    /// Records the termination of an instance, once.
    pub fn note_termination(&mut self, name: &str, end: Termination) {
        if !self.lacks_termination(name, &end.id, end.finished_at) {
            return;
        }
        let ends = &mut self.containers.entry(name.into()).or_default().ends;
        // The first observation after a restart of the agent reports several exits, in any order.
        let place = ends.partition_point(|known| known.finished_at > end.finished_at);
        ends.insert(place, end);
        ends.truncate(TERMINATIONS_KEPT);
    }

    /// Forgets the back-off and the failures of a container.
    pub fn reset_backoff(&mut self, name: &str) {
        if let Some(history) = self.containers.get_mut(name) {
            history.crash = None;
            history.failure = None;
        }
    }

    /// Notes that a start succeeded.
    pub fn note_started(&mut self, name: &str) {
        if let Some(history) = self.containers.get_mut(name) {
            // The crash back-off stays: a container that starts may crash again.
            history.failure = None;
        }
    }

    /// Clears failures of containers and sandboxes that exist nevertheless: only the response was
    /// lost.
    pub fn note_observed(&mut self, observed: &ObservedPod) {
        for (name, history) in &mut self.containers {
            let runs = observed
                .newest(name)
                .is_some_and(|found| matches!(found.phase, ContainerPhase::Running { .. }));
            if runs {
                history.failure = None;
            }
        }
        if observed.ready_sandbox().is_some() {
            self.sandbox = None;
        }
    }

    /// Notes that preparing or creating the sandbox failed.
    pub fn note_sandbox_failed(&mut self, reason: &str, message: &str, now: Timestamp) {
        // No growing back-off: the network becomes ready for all pods at the same time, and they
        // must start immediately then.
        // Nor does a wait for a host port count as a failed attempt.
        let waited = self.waits_for_host_port() || reason == NETWORK_NOT_READY;
        let previous = self.sandbox.take().filter(|_| !waited);
        let (initial, max, key) = (RETRY_INITIAL, RETRY_MAX, Box::default());
        self.sandbox = Some(failure(
            previous.as_ref(),
            reason,
            message,
            now,
            initial,
            max,
            key,
        ));
    }

    /// Notes that the sandbox waits for a resource that another pod holds. A release normally ends
    /// the wait at once; the longest back-off covers a release that goes unnoticed.
    pub fn note_sandbox_waits(&mut self, reason: &str, message: &str, now: Timestamp) {
        let (max, key) = (RETRY_MAX, Box::default());
        self.sandbox = Some(failure(None, reason, message, now, max, max, key));
    }

    /// Notes that another pod has released a resource, which the sandbox may be waiting for: a port
    /// is retried at once, anything else one second after the last attempt.
    pub fn note_release(&mut self) {
        if self.waits_for_host_port() {
            self.sandbox = None;
        }
        if let Some(failure) = &mut self.sandbox {
            failure.delay = failure.delay.min(RETRY_INITIAL);
        }
    }

    /// True if the sandbox waits for a host port that another pod holds.
    fn waits_for_host_port(&self) -> bool {
        let reason = self.sandbox.as_ref().map(|failure| &*failure.reason);
        reason == Some(HOST_PORT_HELD)
    }

    /// Notes that stopping or removing a container or sandbox failed.
    pub fn note_teardown_failed(&mut self, reason: &str, message: &str, now: Timestamp) {
        let previous = self.teardown.take();
        let (initial, max, key) = (RETRY_INITIAL, RETRY_MAX, Box::default());
        self.teardown = Some(failure(
            previous.as_ref(),
            reason,
            message,
            now,
            initial,
            max,
            key,
        ));
    }

    /// Forgets containers that the pod no longer has, and back-offs of edited definitions.
    pub fn retain(&mut self, containers: &[&Container]) {
        self.containers
            .retain(|name, _| containers.iter().any(|c| c.name == *name));
        for container in containers {
            if let Some(history) = self.containers.get_mut(&container.name) {
                let key = backoff_key(container);
                history.failure.take_if(|failure| failure.key != key);
                history.crash.take_if(|crash| crash.key != key);
            }
        }
    }
}

fn failure(
    previous: Option<&StepFailure>,
    reason: &str,
    message: &str,
    at: Timestamp,
    initial: Duration,
    max: Duration,
    key: Box<str>,
) -> StepFailure {
    let delay = previous.map_or(initial, |old| old.delay.saturating_mul(2).min(max));
    StepFailure {
        reason: reason.into(),
        message: message.into(),
        at,
        delay,
        key,
    }
}

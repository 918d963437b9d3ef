//! Exits of container instances, kept to explain restarts.

use std::{sync::Arc, time::Duration};

use rubelet_node_state::events::EventType;
use rubelet_pod_plan::{
    ObservedContainer, ObservedPod, ProcessState,
    history::{TERMINATIONS_KEPT, Termination},
    observed::Exit,
};
use tokio::time::timeout;

use super::PodTask;

/// Event reason: the runtime does not report the exit of a container.
const EXIT_NOT_REPORTED: &str = "ContainerEndNotTold";

/// Maximum numbers of lines and bytes of a log that are kept.
const LOG_LINES: u64 = 5;
const LOG_BYTES: usize = 1024;

/// Timeout for reading a log from the disk.
const LOG_READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of bytes of a termination message that are kept.
const MAX_MESSAGE: usize = 1024;

impl PodTask {
    /// Notes new exits in the last observation, with the last lines of their logs.
    pub(super) async fn note_terminations(&mut self) {
        let observed = Arc::clone(&self.observed);
        for (index, found) in observed.containers.iter().enumerate() {
            let Some(exit) = found.phase.exit() else {
                continue;
            };
            // The newest is first: the log of an exit beyond the kept number is not needed.
            let newer = observed.containers[..index].iter();
            let newer = newer.filter(|newer| newer.name == found.name).count();
            let noted = !self
                .history
                .lacks_termination(&found.name, &found.id, exit.finished_at);
            if noted {
                // A runtime may report the reason `OOMKilled` later than the exit.
                self.history
                    .correct_termination(&found.name, &found.id, &exit.reason);
            }
            if noted || newer >= TERMINATIONS_KEPT || exit.start_was_interrupted() {
                continue;
            }
            let log = self.context.host.log_tail(
                &self.pod,
                &found.name,
                found.restart_count,
                LOG_LINES,
                LOG_BYTES,
            );
            let log = timeout(LOG_READ_TIMEOUT, log).await.unwrap_or_default();
            let termination = self.termination(found, exit, log);
            self.history.note_termination(&found.name, termination);
        }
    }

    /// Records an event for each container that the runtime reports as running although its process
    /// has been gone for long: only the runtime can report its exit.
    pub(super) fn warn_of_lost_exits(&self, before: &ObservedPod) {
        let is_lost = |found: &&ObservedContainer| found.process == ProcessState::Lost;
        for found in self.observed.containers.iter().filter(is_lost) {
            let mut known = before.containers.iter().filter(is_lost);
            if known.any(|known| known.id == found.id) {
                continue;
            }
            let message = format!(
                "the container runtime reports container {} ({}) as running, but its process has \
                 exited; it is not restarted until the runtime reports the exit: delete the pod, or \
                 restart the container, to have the runtime stop it",
                found.name, found.id
            );
            self.event(&found.name, EventType::Warning, EXIT_NOT_REPORTED, &message);
        }
    }

    fn termination(
        &self,
        found: &ObservedContainer,
        exit: &Exit,
        log: Vec<Box<str>>,
    ) -> Termination {
        let history = &self.history;
        let why = history.stopped_because(&found.name, &found.id, exit.finished_at);
        let message = &exit.message[..exit.message.floor_char_boundary(MAX_MESSAGE)];
        Termination {
            id: found.id.clone(),
            restart_count: found.restart_count,
            started_at: exit.started_at,
            finished_at: exit.finished_at,
            exit_code: exit.code,
            reason: exit.reason.clone(),
            message: message.into(),
            stopped_because: why.into(),
            log,
        }
    }
}

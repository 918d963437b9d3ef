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

/// Reason of the event of a container whose exit the runtime does not report.
const END_NOT_TOLD: &str = "ContainerEndNotTold";

/// Most lines and bytes of a log that are kept.
const LOG_LINES: u64 = 5;
const LOG_BYTES: usize = 1024;

/// Deadline for reading it from a disk.
const PATIENCE: Duration = Duration::from_secs(2);

/// Most bytes of a termination message that are kept.
const MAX_MESSAGE: usize = 1024;

impl PodTask {
    /// Notes the ends that the last inspection saw and that are not noted yet, with the last lines
    /// of their logs.
    pub(super) async fn note_terminations(&mut self) {
        let observed = Arc::clone(&self.observed);
        for (index, found) in observed.containers.iter().enumerate() {
            let Some(exit) = found.phase.exit() else {
                continue;
            };
            // The list is newest first: the log of an exit beyond the kept number would be read for
            // nothing.
            let newer = observed.containers[..index].iter();
            let newer = newer.filter(|newer| newer.name == found.name).count();
            let noted = !self
                .history
                .lacks_termination(&found.name, &found.id, exit.finished_at);
            if noted {
                // A runtime may report only later what killed a container.
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
            let log = timeout(PATIENCE, log).await.unwrap_or_default();
            let end = self.end(found, exit, log);
            self.history.note_termination(&found.name, end);
        }
    }

    /// Reports containers that the runtime reports as running although their process has been gone
    /// for long: only the runtime can report that they have exited.
    pub(super) fn warn_of_lost_exits(&self, before: &ObservedPod) {
        let is_lost = |found: &&ObservedContainer| found.process == ProcessState::Lost;
        for found in self.observed.containers.iter().filter(is_lost) {
            let mut known = before.containers.iter().filter(is_lost);
            if known.any(|known| known.id == found.id) {
                continue;
            }
            let message = format!(
                "the runtime says that container {} ({}) runs, but its process is gone; it is not \
                 restarted before the runtime tells its end: delete the pod, or restart the \
                 container, to have the runtime stop it",
                found.name, found.id
            );
            self.event(&found.name, EventType::Warning, END_NOT_TOLD, &message);
        }
    }

    fn end(&self, found: &ObservedContainer, exit: &Exit, log: Vec<Box<str>>) -> Termination {
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

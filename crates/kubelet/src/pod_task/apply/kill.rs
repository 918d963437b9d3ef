//! Stops the containers of one step, all at the same time: each within its grace period, sidecars
//! after the others.

mod container_stop;
mod pod_grace;
mod pre_stop;
mod stop_sequence;

use futures_util::future::join_all;
use rubelet_base::{ContainerId, ErrorChain, event_reason};
use rubelet_node_state::events::EventType;
use rubelet_pod_plan::{ProbeKind, ProbeResult, reason::KillCause, step::Kill};

pub(in crate::pod_task) use container_stop::UnfinishedStop;

use self::{
    container_stop::{ContainerStop, StopOutcome},
    stop_sequence::StopSequence,
};
use super::StepOutcome;
use crate::pod_task::PodTask;

/// Maximum number of bytes of a probe's output that are kept as the reason of a kill.
const MAX_PROBE_OUTPUT: usize = 1024;

impl PodTask {
    pub(in crate::pod_task) async fn kill_containers(&mut self, kills: Vec<Kill>) -> StepOutcome {
        for kill in &kills {
            self.event(
                &kill.name,
                EventType::Normal,
                event_reason::KILLING,
                &kill.message,
            );
            let reason = self.kill_reason(kill);
            let now = self.context.clock.now();
            self.history.note_killed(&kill.name, &kill.id, &reason, now);
        }
        self.save_record();
        let sequence = StopSequence::new(&kills);
        let earlier: Vec<_> = kills
            .iter()
            .map(|kill| self.unfinished.remove(&kill.id))
            .collect();
        let stops = kills.iter().zip(earlier).enumerate();
        let stops = stops.map(|(index, (kill, earlier))| {
            let (task, sequence) = (&*self, &sequence);
            async move {
                let mut stop = ContainerStop::new(task, kill, earlier);
                let end = stop.run(sequence.wait_turn(index)).await;
                sequence.note(index, &end);
                (end, stop.unfinished())
            }
        });
        let ends = join_all(stops).await;
        // Drops attempts that were not resumed in time: a later stop has the full grace period.
        self.unfinished
            .retain(|_, unfinished| unfinished.is_resumable());
        let mut failures = Vec::new();
        for (kill, (end, unfinished)) in kills.iter().zip(ends) {
            match end {
                StopOutcome::Stopped => continue,
                StopOutcome::Failed(error) => {
                    let error = ErrorChain(&error).to_string();
                    failures.push(format!(
                        "failed to \"KillContainer\" for {:?} with KillContainerError: {error:?}",
                        kill.name
                    ));
                }
                StopOutcome::Deferred => {}
            }
            self.unfinished.insert(kill.id.clone(), unfinished);
        }
        self.context.pleg.mark(&self.pod.uid);
        self.kill_result(&failures)
    }

    /// Drops failed stops of containers that have exited since, and with them their hooks.
    pub(in crate::pod_task) fn drop_stops_of_exited(&mut self) {
        let observed = &self.observed;
        let exited = |id: &ContainerId| {
            let mut all = observed.containers.iter();
            all.any(|found| found.id == *id && found.phase.exit().is_some())
        };
        self.unfinished.retain(|id, _| !exited(id));
    }

    /// The reason why a container is stopped, with the probe's output if a probe is the cause.
    fn kill_reason(&self, kill: &Kill) -> String {
        let cause = kill.cause.to_string();
        let kind = match kill.cause {
            KillCause::Liveness => ProbeKind::Liveness,
            KillCause::Startup => ProbeKind::Startup,
            _ => return cause,
        };
        let reports = self.context.prober.reports(&self.pod.uid);
        let report = reports.iter().find(|report| {
            report.container == kill.name
                && report.kind == kind
                && report.outcome == ProbeResult::Failure
        });
        match report.map(|report| report.output.trim()) {
            None | Some("") => cause,
            Some(output) => {
                format!(
                    "{cause}: {}",
                    &output[..output.floor_char_boundary(MAX_PROBE_OUTPUT)]
                )
            }
        }
    }
}

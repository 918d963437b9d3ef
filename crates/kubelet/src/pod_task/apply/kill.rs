//! Ending containers: all of one step at the same time, each within its grace and in its turn.

mod ending;
mod graces;
mod turns;

use futures_util::future::join_all;
use rubelet_base::ErrorChain;
use rubelet_pod_plan::{Outcome, ProbeKind, plan::Kill, why::KillCause};

pub(in crate::pod_task) use ending::Unfinished;

use self::{
    ending::{End, Ending},
    turns::Turns,
};
use super::Flow;
use crate::{events::EventType, pod_task::PodTask};

/// So much of what a probe said is kept as the reason of a kill.
const MAX_WHY: usize = 1024;

impl PodTask {
    pub(in crate::pod_task) async fn kill_containers(&mut self, kills: Vec<Kill>) -> (Flow, bool) {
        for kill in &kills {
            self.event(&kill.name, EventType::Normal, "Killing", &kill.message);
            let why = self.why(kill);
            let now = self.context.clock.now();
            self.history.note_killed(&kill.name, &kill.id, &why, now);
        }
        self.save_record();
        let turns = Turns::new(&kills);
        let endings = kills.iter().enumerate().map(|(index, kill)| {
            let (task, turns) = (&*self, &turns);
            async move {
                let mut ending = Ending::new(task, kill);
                let end = ending.run(turns.come(index)).await;
                turns.note(index, &end);
                (end, ending.unfinished())
            }
        });
        let ends = join_all(endings).await;
        self.unfinished.retain(|_, unfinished| unfinished.counts());
        let mut failures = Vec::new();
        for (kill, (end, unfinished)) in kills.iter().zip(ends) {
            match end {
                End::Ended => {
                    self.unfinished.remove(&kill.id);
                    continue;
                }
                End::Failed(error) => {
                    let error = ErrorChain(&error).to_string();
                    failures.push(format!(
                        "failed to \"KillContainer\" for {:?} with KillContainerError: {error:?}",
                        kill.name
                    ));
                }
                End::NotYet => {}
            }
            self.unfinished.insert(kill.id.clone(), unfinished);
        }
        self.context.pleg.mark(&self.pod.uid);
        self.kill_result(&failures)
    }

    /// Why a container is stopped, with what its probe said where that is the cause.
    fn why(&self, kill: &Kill) -> String {
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
                && report.outcome == Outcome::Failure
        });
        match report.map(|report| report.output.trim()) {
            None | Some("") => cause,
            Some(output) => {
                format!(
                    "{cause}: {}",
                    &output[..output.floor_char_boundary(MAX_WHY)]
                )
            }
        }
    }
}

//! One attempt of a probe: it waits for a free slot, tries, and retries at once where the answer
//! proves nothing about the container.

use std::{sync::Arc, time::Duration};

use rubelet_api::probe::ProbeHandler;
use rubelet_cri::RuntimeService;
use rubelet_node_state::throttle::Throttle;
use rubelet_pod_plan::probe::Attempt;
use tokio::time::Instant;

use super::{
    exec, net::NetProbe, probe_context::ProbeContext, probe_try::ProbeTry, timing::Failed,
};
use crate::report::{ProbeOutcome, ProbeReport};

/// How many tries an attempt makes; then it fails, and the next one comes when it is due.
const TRIES: u32 = 3;
/// How many network attempts run at once, and so many commands.
const NETWORK_AT_ONCE: usize = 64;
const EXECS_AT_ONCE: usize = 8;
/// An attempt that takes longer than this only waits for its target, which costs next to nothing,
/// and no longer counts: targets that don't answer must not hold up the others.
const NETWORK_BUSY: Duration = Duration::from_millis(100);
const EXEC_BUSY: Duration = Duration::from_millis(500);

/// What attempts are made with.
pub(super) struct Tools {
    runtime: Arc<dyn RuntimeService>,
    net: Arc<dyn NetProbe>,
    network: Throttle,
    execs: Throttle,
}

/// The result of an attempt.
pub(super) struct FinishedAttempt {
    /// What it means for the container.
    pub(super) attempt: Attempt,
    /// The last try.
    pub(super) report: ProbeReport,
    /// How many tries the agent ran too late.
    pub(super) late: u32,
}

impl Tools {
    pub(super) fn new(runtime: Arc<dyn RuntimeService>, net: Arc<dyn NetProbe>) -> Self {
        Self {
            runtime,
            net,
            network: Throttle::new(NETWORK_AT_ONCE),
            execs: Throttle::new(EXECS_AT_ONCE),
        }
    }

    /// Makes an attempt that is due now. Dropping it breaks it off.
    pub(super) async fn attempt(&self, trial: &ProbeContext, due: Instant) -> FinishedAttempt {
        let (throttle, busy) = match trial.probe().handler {
            ProbeHandler::Exec(_) => (&self.execs, EXEC_BUSY),
            _ => (&self.network, NETWORK_BUSY),
        };
        throttle.run_counting(busy, self.tries(trial, due)).await
    }

    async fn tries(&self, trial: &ProbeContext, due: Instant) -> FinishedAttempt {
        // Only the first try can have been kept waiting.
        let mut waited = due.elapsed();
        let mut late = 0;
        let mut tries = 0;
        loop {
            let tried = self.once(trial).await;
            tries += 1;
            let attempt = judge(&tried, waited, trial.timeout());
            waited = Duration::ZERO;
            late += u32::from(attempt == Attempt::Late);
            if tries == TRIES || matches!(attempt, Attempt::Success | Attempt::Failure) {
                return FinishedAttempt {
                    attempt,
                    report: tried.report,
                    late,
                };
            }
        }
    }

    async fn once(&self, trial: &ProbeContext) -> ProbeTry {
        let handler = &trial.probe().handler;
        if let ProbeHandler::Exec(command) = handler {
            return exec::run(&*self.runtime, trial, command).await;
        }
        let began = Instant::now();
        let report = self.net.probe(handler, &trial.ip, trial.timeout()).await;
        ProbeTry {
            report,
            took: began.elapsed(),
        }
    }
}

fn judge(tried: &ProbeTry, waited: Duration, timeout: Duration) -> Attempt {
    let timed_out = match tried.report.verdict {
        ProbeOutcome::Passed | ProbeOutcome::Warned => return Attempt::Success,
        ProbeOutcome::Errored => return Attempt::Errored,
        ProbeOutcome::Failed => false,
        ProbeOutcome::TimedOut => true,
    };
    let failed = Failed {
        waited,
        took: tried.took,
        timeout,
        timed_out,
    };
    if failed.is_late() {
        Attempt::Late
    } else {
        Attempt::Failure
    }
}

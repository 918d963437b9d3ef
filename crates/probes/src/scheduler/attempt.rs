//! One attempt of a probe: it waits for a free slot, runs the probe, and retries at once if the
//! result proves nothing about the container.

use std::{sync::Arc, time::Duration};

use rubelet_api::probe::ProbeHandler;
use rubelet_cri::RuntimeService;
use rubelet_node_state::throttle::Throttle;
use rubelet_pod_plan::probe::AttemptOutcome;
use tokio::time::Instant;

use super::{
    exec, net::NetProbe, probe_context::ProbeContext, probe_try::ProbeTry,
    timing::UnsuccessfulAttempt,
};
use crate::report::{ProbeOutcome, ProbeReport};

/// Maximum number of tries of an attempt.
const TRIES: u32 = 3;
/// Maximum number of concurrent network attempts, and of concurrent commands.
const NETWORK_AT_ONCE: usize = 64;
const EXECS_AT_ONCE: usize = 8;
/// An attempt that takes longer only waits for its target and no longer counts: targets that do not
/// respond must not delay other probes.
const NETWORK_BUSY: Duration = Duration::from_millis(100);
const EXEC_BUSY: Duration = Duration::from_millis(500);

/// Runs attempts with limited concurrency.
pub(super) struct AttemptRunner {
    runtime: Arc<dyn RuntimeService>,
    net: Arc<dyn NetProbe>,
    network: Throttle,
    execs: Throttle,
}

/// The result of an attempt.
pub(super) struct FinishedAttempt {
    /// The outcome.
    pub(super) attempt: AttemptOutcome,
    /// The last try.
    pub(super) report: ProbeReport,
    /// Number of tries that the agent ran too late.
    pub(super) late: u32,
}

impl AttemptRunner {
    pub(super) fn new(runtime: Arc<dyn RuntimeService>, net: Arc<dyn NetProbe>) -> Self {
        Self {
            runtime,
            net,
            network: Throttle::new(NETWORK_AT_ONCE),
            execs: Throttle::new(EXECS_AT_ONCE),
        }
    }

    /// Runs an attempt that is due now. Dropping the future aborts it.
    pub(super) async fn attempt(&self, context: &ProbeContext, due: Instant) -> FinishedAttempt {
        let (throttle, busy) = match context.probe().handler {
            ProbeHandler::Exec(_) => (&self.execs, EXEC_BUSY),
            _ => (&self.network, NETWORK_BUSY),
        };
        throttle.run_counting(busy, self.tries(context, due)).await
    }

    async fn tries(&self, context: &ProbeContext, due: Instant) -> FinishedAttempt {
        // Only the first try can have been kept waiting.
        let mut waited = due.elapsed();
        let mut late = 0;
        let mut tries = 0;
        loop {
            let tried = self.once(context).await;
            tries += 1;
            let attempt = judge(&tried, waited, context.timeout());
            waited = Duration::ZERO;
            late += u32::from(attempt == AttemptOutcome::Late);
            if tries == TRIES
                || matches!(attempt, AttemptOutcome::Success | AttemptOutcome::Failure)
            {
                return FinishedAttempt {
                    attempt,
                    report: tried.report,
                    late,
                };
            }
        }
    }

    async fn once(&self, context: &ProbeContext) -> ProbeTry {
        let handler = &context.probe().handler;
        if let ProbeHandler::Exec(command) = handler {
            return exec::run(&*self.runtime, context, command).await;
        }
        let began = Instant::now();
        let report = self
            .net
            .probe(handler, &context.ip, context.timeout())
            .await;
        ProbeTry {
            report,
            took: began.elapsed(),
        }
    }
}

fn judge(tried: &ProbeTry, waited: Duration, timeout: Duration) -> AttemptOutcome {
    let timed_out = match tried.report.verdict {
        ProbeOutcome::Passed | ProbeOutcome::Warned => return AttemptOutcome::Success,
        ProbeOutcome::Errored => return AttemptOutcome::Errored,
        ProbeOutcome::Failed => false,
        ProbeOutcome::TimedOut => true,
    };
    let failed = UnsuccessfulAttempt {
        waited,
        took: tried.took,
        timeout,
        timed_out,
    };
    if failed.is_late() {
        AttemptOutcome::Late
    } else {
        AttemptOutcome::Failure
    }
}

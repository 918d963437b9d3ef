//! Stopping one container: preStop hook, the wait for other containers, SIGTERM, SIGKILL.

use std::{pin::pin, time::Duration};

use rubelet_base::ErrorChain;
use rubelet_cri::{CriError, CriResult, v1};
use rubelet_pod_plan::{grace::GraceDeadline, step::Kill};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use super::{pod_grace::PodGrace, pre_stop::PreStop};
use crate::pod_task::PodTask;

/// Time for which a stop call counts as work of the runtime; after that it only waits for the exit.
const KILL_BUSY: Duration = Duration::from_millis(250);

/// Pause before the kill is repeated after an error.
const KILL_AGAIN: Duration = Duration::from_secs(1);

/// Time within which a failed stop is resumed. A later one has the full grace period.
const RESUME: Duration = Duration::from_secs(60);

/// Bound on durations, so that they can be added to an instant.
const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// A stop that failed. The next attempt has the rest of the grace period, and does not run the
/// preStop hook again.
pub(in crate::pod_task) struct UnfinishedStop {
    deadline: Instant,
    pre_stop: PreStop,
    until: Instant,
}

impl UnfinishedStop {
    /// True if the next attempt resumes it.
    pub(super) fn is_resumable(&self) -> bool {
        self.until > Instant::now()
    }
}

/// The outcome of a stop.
#[derive(Debug)]
pub(super) enum StopOutcome {
    /// The container has exited.
    Stopped,
    /// A container that has to stop first could not be stopped.
    Deferred,
    /// The runtime could not stop it.
    Failed(CriError),
}

/// Stops one container.
pub(super) struct ContainerStop<'a> {
    task: &'a PodTask,
    kill: &'a Kill,
    began: Instant,
    clock: GraceDeadline,
    pod_grace: PodGrace,
    pre_stop: PreStop,
}

impl<'a> ContainerStop<'a> {
    /// Begins a stop, or resumes an earlier attempt.
    pub(super) fn new(task: &'a PodTask, kill: &'a Kill, earlier: Option<UnfinishedStop>) -> Self {
        let began = Instant::now();
        let mut clock = GraceDeadline::new(kill.grace);
        let mut pre_stop = PreStop::new(kill);
        if let Some(earlier) = earlier.filter(UnfinishedStop::is_resumable) {
            clock.shrink(Duration::ZERO, earlier.deadline.duration_since(began));
            pre_stop = earlier.pre_stop;
        }
        Self {
            task,
            kill,
            began,
            clock,
            pod_grace: PodGrace::of(task),
            pre_stop,
        }
    }

    /// Runs the hook and stops the container. `turn` resolves to false if a container that has to
    /// stop first could not be stopped.
    pub(super) async fn run(&mut self, turn: impl Future<Output = bool>) -> StopOutcome {
        self.shrink();
        self.pre_stop().await;
        // At the end of the grace period all containers are stopped, whatever their order.
        if self.within_grace(turn).await == Some(false) {
            return StopOutcome::Deferred;
        }
        match self.stop().await {
            Err(error) if !error.is_not_found() => StopOutcome::Failed(error),
            _ => {
                self.pre_stop.container_ended().await;
                StopOutcome::Stopped
            }
        }
    }

    /// The state that the next attempt continues from.
    pub(super) fn unfinished(self) -> UnfinishedStop {
        UnfinishedStop {
            deadline: self.at(self.clock.deadline()),
            pre_stop: self.pre_stop,
            until: Instant::now() + RESUME,
        }
    }

    /// Runs the preStop hook and waits for it, but not beyond the grace period.
    async fn pre_stop(&mut self) {
        if self.left().is_zero() {
            return;
        }
        // Taken out of `self`, which the wait borrows. If this future is dropped, so is the whole
        // stop.
        let mut pre_stop = std::mem::take(&mut self.pre_stop);
        pre_stop.start(self.task);
        self.within_grace(pre_stop.ended()).await;
        self.pre_stop = pre_stop;
    }

    /// SIGTERM now, SIGKILL after the grace period.
    async fn stop(&mut self) -> CriResult<()> {
        let context = &self.task.context;
        let ready = Instant::now();
        let call = async {
            // The wait for the throttle does not shorten the grace period.
            self.clock.extend(ready.elapsed());
            let timeout = self.clock.term(self.began.elapsed());
            let mut first = pin!(self.task.call_stop(self.kill, timeout));
            loop {
                // Computed in each round: the pod's grace may have become shorter.
                let cut = self.clock.early_kill_at();
                let due = self.at(cut.unwrap_or_default());
                tokio::select! {
                    biased;
                    result = &mut first => return result,
                    () = self.pod_grace.changed() => self.shrink(),
                    () = sleep_until(due), if cut.is_some() => break,
                }
            }
            loop {
                // Has the runtime send SIGKILL now instead of at the end of the first call's
                // timeout.
                let killed = self.task.call_stop(self.kill, 0);
                let error = tokio::select! {
                    biased;
                    result = &mut first => return result,
                    result = killed => match result {
                        Err(error) if !error.is_not_found() => error,
                        _ => return Ok(()),
                    },
                };
                debug!(container = %self.kill.name, error = %ErrorChain(&error), "Failed to kill container, retrying");
                tokio::select! {
                    biased;
                    result = &mut first => return result,
                    () = sleep(KILL_AGAIN) => {}
                }
            }
        };
        context.stops.run_counting(KILL_BUSY, call).await
    }

    /// Runs `work` until the grace period ends; `None` if it ended first.
    async fn within_grace<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            let deadline = self.at(self.clock.deadline());
            // Cancel safety: `work` is pinned outside of the loop and continues in the next round.
            tokio::select! {
                biased;
                value = &mut work => return Some(value),
                () = sleep_until(deadline) => return None,
                () = self.pod_grace.changed() => self.shrink(),
            }
        }
    }

    /// Applies the pod's grace period if it ends sooner.
    fn shrink(&mut self) {
        if let Some(grace) = self.pod_grace.now() {
            self.clock.shrink(self.began.elapsed(), grace);
        }
    }

    fn left(&self) -> Duration {
        let deadline = self.clock.deadline();
        deadline.saturating_sub(self.began.elapsed())
    }

    fn at(&self, after: Duration) -> Instant {
        self.began + after.min(FAR)
    }
}

impl PodTask {
    async fn call_stop(&self, kill: &Kill, timeout: i64) -> CriResult<()> {
        let request = v1::StopContainerRequest {
            container_id: kill.id.as_str().to_owned(),
            timeout,
        };
        self.context.runtime.stop_container(request).await.map(drop)
    }
}

//! Stopping one container: preStop hook, the wait for other containers, SIGTERM, SIGKILL.

use std::{pin::pin, time::Duration};

use rubelet_base::ErrorChain;
use rubelet_cri::{CriError, CriResult, v1};
use rubelet_pod_plan::{grace::KillClock, step::Kill};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, warn};

use super::pod_grace::PodGrace;
use crate::{events::EventType, pod_task::PodTask};

/// How long stopping a container keeps the runtime busy; after that it only waits for the exit.
const KILL_BUSY: Duration = Duration::from_millis(250);

/// Pause before a runtime that did not kill is called again.
const KILL_AGAIN: Duration = Duration::from_secs(1);

/// How long a failed stop is resumed. A later one starts with the full grace period.
const RESUME: Duration = Duration::from_secs(60);

/// Later than anything that is waited for.
const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// A stop that failed on the way. The next attempt gets what is left of the grace period, and does
/// not run the preStop hook again.
#[derive(Debug, Clone, Copy)]
pub(in crate::pod_task) struct UnfinishedStop {
    deadline: Instant,
    hook_done: bool,
    until: Instant,
}

impl UnfinishedStop {
    /// Whether the next attempt resumes it.
    pub(super) fn counts(&self) -> bool {
        self.until > Instant::now()
    }
}

/// How a stop ended.
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
    clock: KillClock,
    pod_grace: PodGrace,
    hook_done: bool,
}

impl<'a> ContainerStop<'a> {
    pub(super) fn new(task: &'a PodTask, kill: &'a Kill) -> Self {
        let began = Instant::now();
        let mut clock = KillClock::new(kill.grace);
        let earlier = task.unfinished.get(&kill.id);
        let earlier = earlier.filter(|earlier| earlier.counts());
        if let Some(earlier) = earlier {
            clock.shrink(Duration::ZERO, earlier.deadline.duration_since(began));
        }
        Self {
            task,
            kill,
            began,
            clock,
            pod_grace: PodGrace::of(task),
            hook_done: earlier.is_some_and(|earlier| earlier.hook_done),
        }
    }

    /// Runs the hook and stops the container. `turn` resolves to false if a container that has to stop
    /// first could not be stopped.
    pub(super) async fn run(&mut self, turn: impl Future<Output = bool>) -> StopOutcome {
        self.shrink();
        self.pre_stop().await;
        // When the grace is used up, everything is stopped at once.
        if self.within_grace(turn).await == Some(false) {
            return StopOutcome::Deferred;
        }
        match self.stop().await {
            Err(error) if !error.is_not_found() => StopOutcome::Failed(error),
            _ => StopOutcome::Stopped,
        }
    }

    /// What is left to do if this attempt failed.
    pub(super) fn unfinished(&self) -> UnfinishedStop {
        UnfinishedStop {
            deadline: self.at(self.clock.deadline()),
            hook_done: self.hook_done,
            until: Instant::now() + RESUME,
        }
    }

    async fn pre_stop(&mut self) {
        let kill = self.kill;
        let Some(hook) = &kill.pre_stop else {
            return;
        };
        let left = self.left();
        if self.hook_done || left.is_zero() {
            return;
        }
        let task = self.task;
        let hook = task.run_hook(&kill.name, &kill.id, hook, left);
        let outcome = self.within_grace(hook).await;
        self.hook_done = true;
        let why = match &outcome {
            Some(Ok(())) => return,
            Some(Err(error)) => error.to_string(),
            None => "it did not end within the grace period".to_owned(),
        };
        warn!(pod = %task.pod.name, container = %kill.name, error = why, "PreStop hook failed");
        task.event(
            &kill.name,
            EventType::Warning,
            "FailedPreStopHook",
            "PreStopHook failed",
        );
    }

    /// SIGTERM now, SIGKILL after the grace period.
    async fn stop(&mut self) -> CriResult<()> {
        let context = &self.task.context;
        let ready = Instant::now();
        let call = async {
            self.clock.held_up(ready.elapsed());
            let timeout = self.clock.term(self.began.elapsed());
            let mut first = pin!(self.task.call_stop(self.kill, timeout));
            loop {
                let cut = self.clock.cut_at();
                let due = self.at(cut.unwrap_or_default());
                tokio::select! {
                    biased;
                    result = &mut first => return result,
                    () = self.pod_grace.changed() => self.shrink(),
                    () = sleep_until(due), if cut.is_some() => break,
                }
            }
            loop {
                // The runtime is to kill at once instead of later by itself.
                let killed = self.task.call_stop(self.kill, 0);
                let error = tokio::select! {
                    biased;
                    result = &mut first => return result,
                    result = killed => match result {
                        Err(error) if !error.is_not_found() => error,
                        _ => return Ok(()),
                    },
                };
                debug!(container = %self.kill.name, error = %ErrorChain(&error), "A container could not be killed at once");
                tokio::select! {
                    biased;
                    result = &mut first => return result,
                    () = sleep(KILL_AGAIN) => {}
                }
            }
        };
        context.stops.run_counting(KILL_BUSY, call).await
    }

    /// Works until the grace is used up; `None`: it was.
    async fn within_grace<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        loop {
            let deadline = self.at(self.clock.deadline());
            // Cancel safety: the work continues where it was.
            tokio::select! {
                biased;
                value = &mut work => return Some(value),
                () = sleep_until(deadline) => return None,
                () = self.pod_grace.changed() => self.shrink(),
            }
        }
    }

    /// Takes the pod's grace over where it is sooner over.
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

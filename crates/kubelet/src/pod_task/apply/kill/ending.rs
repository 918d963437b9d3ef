//! The end of one container: preStop hook, the wait for its turn, SIGTERM, SIGKILL.

use std::{pin::pin, time::Duration};

use rubelet_base::ErrorChain;
use rubelet_cri::{CriError, CriResult, v1};
use rubelet_pod_plan::{grace::KillClock, plan::Kill};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, warn};

use super::graces::Graces;
use crate::{events::EventType, pod_task::PodTask};

/// So long the runtime is busy with a container that is to end; after that it only waits.
const KILL_BUSY: Duration = Duration::from_millis(250);

/// Pause before a runtime that did not kill when it was told to is told again.
const KILL_AGAIN: Duration = Duration::from_secs(1);

/// So long an end that failed is gone on with, and not begun anew.
const RESUME: Duration = Duration::from_secs(60);

/// Later than anything that is waited for.
const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// An end that failed on the way. What was used up of the grace is not given again, and the preStop
/// hook does not run again.
#[derive(Debug, Clone, Copy)]
pub(in crate::pod_task) struct Unfinished {
    deadline: Instant,
    hook_done: bool,
    until: Instant,
}

impl Unfinished {
    /// Whether it is still gone on with.
    pub(super) fn counts(&self) -> bool {
        self.until > Instant::now()
    }
}

/// How an end went.
#[derive(Debug)]
pub(super) enum End {
    /// The container has ended.
    Ended,
    /// Its turn did not come because another container could not be stopped.
    NotYet,
    /// The runtime could not stop it.
    Failed(CriError),
}

/// The end of one container.
pub(super) struct Ending<'a> {
    task: &'a PodTask,
    kill: &'a Kill,
    began: Instant,
    clock: KillClock,
    graces: Graces,
    hook_done: bool,
}

impl<'a> Ending<'a> {
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
            graces: Graces::of(task),
            hook_done: earlier.is_some_and(|earlier| earlier.hook_done),
        }
    }

    /// Goes all the way. `turn` is true when the container's turn has come, false when it won't.
    pub(super) async fn run(&mut self, turn: impl Future<Output = bool>) -> End {
        self.shrink();
        self.pre_stop().await;
        // When the grace is used up, everything is stopped at once.
        if self.within_grace(turn).await == Some(false) {
            return End::NotYet;
        }
        match self.stop().await {
            Err(error) if !error.is_not_found() => End::Failed(error),
            _ => End::Ended,
        }
    }

    /// What is left to do of an end that failed.
    pub(super) fn unfinished(&self) -> Unfinished {
        Unfinished {
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
            Some(Err(message)) => message.as_str(),
            None => "it did not end within the grace period",
        };
        warn!(pod = %task.pod.name, container = %kill.name, error = why, "A preStop hook failed");
        task.event(
            &kill.name,
            EventType::Warning,
            "FailedPreStopHook",
            "PreStopHook failed",
        );
    }

    /// SIGTERM now, SIGKILL when the grace is over.
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
                    () = self.graces.changed() => self.shrink(),
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
            // Cancel safety: the work goes on where it was.
            tokio::select! {
                biased;
                value = &mut work => return Some(value),
                () = sleep_until(deadline) => return None,
                () = self.graces.changed() => self.shrink(),
            }
        }
    }

    /// Takes the pod's grace over where it is sooner over.
    fn shrink(&mut self) {
        if let Some(grace) = self.graces.now() {
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

//! The pod's objects in the API server: its volumes follow their changes, and a pod that waits for
//! an object is retried when the object changes.

use std::{sync::Arc, time::Duration};

use rubelet_api::{objects::PodObjects, pod::Pod};
use rubelet_base::{Backoff, event_reason};
use rubelet_node_state::{
    events::EventType,
    host_error::HostError,
    objects::{CONFIG_ERROR, ObjectRefs, ObjectSource, needs_volume_refresh},
};
use rubelet_pod_plan::step_failure::StepFailure;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tracing::debug;

use super::{PodTask, repeat_backoff::RepeatBackoff};

/// First and longest pause after a failed update of volumes, as for volume operations of the
/// kubelet.
const PAUSE_INITIAL: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(122);
/// Shortest time between two retries of a pod that waits for objects.
const BETWEEN_TRIES: Duration = Duration::from_secs(1);

/// Follows the objects of one pod.
pub(super) struct ObjectChanges {
    /// Number of their changes; the value that is marked as seen was read.
    changes: watch::Receiver<u64>,
    /// The number of changes and the pod that the volumes were last written from.
    written: Option<(u64, Arc<Pod>)>,
    pauses: Backoff,
    again_at: Option<Instant>,
    tried_at: Option<Instant>,
}

/// Changes of objects that an idle pod waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AwaitedObjects {
    /// True if it waits for changes of its volumes' contents.
    volumes: bool,
    /// True if it waits for the object that it failed for.
    failed: bool,
}

/// The reaction to a change of objects.
pub(super) enum ObjectUpdate {
    /// Update the volumes with these objects, read at this number of changes.
    Volumes(u64, Result<PodObjects, HostError>),
    /// Retry failed steps.
    Retry,
}

impl ObjectChanges {
    pub(super) fn new(changes: watch::Receiver<u64>) -> Self {
        Self {
            changes,
            written: None,
            pauses: Backoff::new(PAUSE_INITIAL, PAUSE_MAX),
            again_at: None,
            tried_at: None,
        }
    }

    /// Follows the objects of the edited pod.
    pub(super) fn follow(&mut self, changes: watch::Receiver<u64>) {
        let written = self.written.take();
        *self = Self::new(changes);
        // The count continues; it is the pod that differs.
        self.written = written;
    }

    /// Reads objects, and marks changes until now as seen.
    pub(super) async fn read(
        &mut self,
        source: &dyn ObjectSource,
        pod: &Arc<Pod>,
        refs: ObjectRefs<'_>,
    ) -> Result<PodObjects, HostError> {
        // Before the read: a change during the read counts as unseen.
        self.changes.mark_unchanged();
        source.objects(pod, refs).await
    }

    /// Waits for a change that requires a reaction. Cancel safe: a change that was not returned is
    /// found again.
    pub(super) async fn next(
        &mut self,
        source: &dyn ObjectSource,
        pod: &Arc<Pod>,
        waits: AwaitedObjects,
    ) -> ObjectUpdate {
        loop {
            if waits.volumes && !self.is_up_to_date(pod) {
                if let Some(at) = self.again_at {
                    tokio::select! {
                        () = sleep_until(at) => {}
                        Ok(()) = self.changes.changed() => {}
                    }
                    self.again_at = None;
                }
                // Before the read: a change during the read leads to one more update.
                let count = *self.changes.borrow_and_update();
                return ObjectUpdate::Volumes(
                    count,
                    source.objects(pod, ObjectRefs::Volumes).await,
                );
            }
            if self.changes.changed().await.is_err() {
                // The sender is gone: no change will follow.
                std::future::pending::<()>().await;
            }
            if waits.failed && !waits.volumes {
                if let Some(at) = self.tried_at {
                    sleep_until(at + BETWEEN_TRIES).await;
                }
                return ObjectUpdate::Retry;
            }
        }
    }

    fn is_up_to_date(&self, pod: &Arc<Pod>) -> bool {
        let count = *self.changes.borrow();
        let written = self.written.as_ref();
        written.is_some_and(|(at, of)| *at == count && Arc::ptr_eq(of, pod))
    }

    fn note_written(&mut self, count: u64, pod: &Arc<Pod>) {
        self.written = Some((count, Arc::clone(pod)));
        self.pauses.reset();
        self.again_at = None;
    }

    fn note_failed(&mut self) {
        self.again_at = Some(Instant::now() + self.pauses.advance());
    }
}

impl PodTask {
    /// Reads the objects of the pod's volumes.
    pub(super) async fn volume_objects(&mut self) -> Result<PodObjects, HostError> {
        let source = Arc::clone(&self.context.objects);
        self.object_changes
            .read(&*source, &self.pod, ObjectRefs::Volumes)
            .await
    }

    /// The changes of objects that an idle pod waits for. A terminated pod needs no objects any
    /// more.
    pub(super) fn awaited_objects(&self) -> AwaitedObjects {
        let ended = self
            .status
            .as_ref()
            .is_some_and(|one| one.phase.is_terminal());
        if ended || self.removing {
            self.context.objects.forget(&self.pod.uid);
            return AwaitedObjects {
                volumes: false,
                failed: false,
            };
        }
        let history = &self.history;
        let containers = history.containers.values();
        let mut failures = containers.filter_map(|one| one.failure.as_ref());
        let sandbox = history.sandbox.as_ref();
        AwaitedObjects {
            volumes: self.observed.ready_sandbox().is_some() && needs_volume_refresh(&self.pod),
            failed: sandbox.is_some_and(|failure| *failure.reason == *event_reason::FAILED_MOUNT)
                || failures.any(|failure| *failure.reason == *CONFIG_ERROR),
        }
    }

    /// Handles a change of the objects. Not cancelled, so that no volume is left half written.
    pub(super) async fn apply_object_update(&mut self, update: ObjectUpdate) {
        match update {
            ObjectUpdate::Retry => self.retry_failed(),
            ObjectUpdate::Volumes(count, objects) => {
                let written = match objects {
                    Ok(objects) => self.context.host.refresh(&self.pod, &objects).await,
                    Err(error) => Err(error),
                };
                match written {
                    Ok(()) => {
                        debug!(pod = %self.pod.name, "Updated volumes");
                        self.object_changes.note_written(count, &self.pod);
                        self.retry_failed();
                    }
                    Err(error) => {
                        let (kind, reason) = (EventType::Warning, error.reason);
                        let recorder = &self.context.recorder;
                        recorder.pod(&self.pod, None, kind, reason, &error.message);
                        self.object_changes.note_failed();
                    }
                }
            }
        }
    }

    /// Resets failures that were due to missing objects, so that the steps are retried.
    fn retry_failed(&mut self) {
        let now = Instant::now();
        let recently = |at: Instant| now < at + BETWEEN_TRIES;
        if self.object_changes.tried_at.is_some_and(recently) {
            return;
        }
        let history = &mut self.history;
        let mount = |failure: &mut StepFailure| *failure.reason == *event_reason::FAILED_MOUNT;
        let config = |failure: &mut StepFailure| *failure.reason == *CONFIG_ERROR;
        let mut reset = history.sandbox.take_if(mount).is_some();
        for one in history.containers.values_mut() {
            reset |= one.failure.take_if(config).is_some();
        }
        if reset {
            self.object_changes.tried_at = Some(now);
            self.repeat_backoff = RepeatBackoff::default();
        }
    }
}

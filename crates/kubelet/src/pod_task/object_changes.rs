//! The objects that the pod reads from the API server while it runs: its volumes follow them, and a
//! pod that waits for an object is retried when that changes.

use std::{sync::Arc, time::Duration};

use rubelet_api::{objects::PodObjects, pod::Pod};
use rubelet_base::Backoff;
use rubelet_node_state::{
    events::EventType,
    host_error::HostError,
    objects::{CONFIG_ERROR, FAILED_MOUNT, ObjectRefs, ObjectSource, needs_volume_refresh},
};
use rubelet_pod_plan::history::Failure;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tracing::debug;

use super::{PodTask, repeat_backoff::RepeatBackoff};

/// First and longest pause after volumes could not be updated; those of upstream's volume
/// operations.
const PAUSE_INITIAL: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(122);
/// A pod that waits for objects which change all the time is not tried more often.
const BETWEEN_TRIES: Duration = Duration::from_secs(1);

/// Follows the objects of one pod.
pub(super) struct ObjectChanges {
    /// Counts their changes. What is marked as seen was read.
    changes: watch::Receiver<u64>,
    /// What the volumes were last written from: the count, and the pod.
    written: Option<(u64, Arc<Pod>)>,
    pauses: Backoff,
    again_at: Option<Instant>,
    tried_at: Option<Instant>,
}

/// Changes of objects that an idle pod waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AwaitedObjects {
    /// A change of what its volumes hold.
    volumes: bool,
    /// A change of what it failed for.
    failed: bool,
}

/// Something must be done.
pub(super) enum ObjectUpdate {
    /// Update the volumes from this.
    Volumes(u64, Result<PodObjects, HostError>),
    /// Try again what failed.
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

    /// The pod was edited, and is tracked again.
    pub(super) fn follow(&mut self, changes: watch::Receiver<u64>) {
        let written = self.written.take();
        *self = Self::new(changes);
        // The count continues; it is the pod that differs.
        self.written = written;
    }

    /// Reads objects, and marks what was known before.
    pub(super) async fn read(
        &mut self,
        source: &dyn ObjectSource,
        pod: &Arc<Pod>,
        refs: ObjectRefs<'_>,
    ) -> Result<PodObjects, HostError> {
        // Before the read: a change during it counts as one that was not read.
        self.changes.mark_unchanged();
        source.objects(pod, refs).await
    }

    /// Waits until something must be done. Cancel safe: what was not returned is found again.
    pub(super) async fn next(
        &mut self,
        source: &dyn ObjectSource,
        pod: &Arc<Pod>,
        waits: AwaitedObjects,
    ) -> ObjectUpdate {
        loop {
            if waits.volumes && !self.is_written(pod) {
                if let Some(at) = self.again_at {
                    tokio::select! {
                        () = sleep_until(at) => {}
                        Ok(()) = self.changes.changed() => {}
                    }
                    self.again_at = None;
                }
                // The count first: a change during the read leads to one more update.
                let count = *self.changes.borrow_and_update();
                return ObjectUpdate::Volumes(
                    count,
                    source.objects(pod, ObjectRefs::Volumes).await,
                );
            }
            if self.changes.changed().await.is_err() {
                // Nothing changes any more.
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

    fn is_written(&self, pod: &Arc<Pod>) -> bool {
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
    /// Reads what the volumes are made of.
    pub(super) async fn volume_objects(&mut self) -> Result<PodObjects, HostError> {
        let source = Arc::clone(&self.context.objects);
        self.object_changes
            .read(&*source, &self.pod, ObjectRefs::Volumes)
            .await
    }

    /// The changes of objects that an idle pod waits for. One that has ended needs no objects any
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
            failed: sandbox.is_some_and(|failure| *failure.reason == *FAILED_MOUNT)
                || failures.any(|failure| *failure.reason == *CONFIG_ERROR),
        }
    }

    /// Handles a change of the objects. Not cancelled, so that no volume is left half written.
    pub(super) async fn apply_object_update(&mut self, news: ObjectUpdate) {
        match news {
            ObjectUpdate::Retry => self.try_again(),
            ObjectUpdate::Volumes(count, objects) => {
                let written = match objects {
                    Ok(objects) => self.context.host.refresh(&self.pod, &objects).await,
                    Err(error) => Err(error),
                };
                match written {
                    Ok(()) => {
                        debug!(pod = %self.pod.name, "Volumes are as their objects are");
                        self.object_changes.note_written(count, &self.pod);
                        self.try_again();
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
    /// What failed for an object may work now.
    fn try_again(&mut self) {
        let now = Instant::now();
        let recently = |at: Instant| now < at + BETWEEN_TRIES;
        if self.object_changes.tried_at.is_some_and(recently) {
            return;
        }
        let history = &mut self.history;
        let mount = |failure: &mut Failure| *failure.reason == *FAILED_MOUNT;
        let config = |failure: &mut Failure| *failure.reason == *CONFIG_ERROR;
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

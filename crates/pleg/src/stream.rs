//! The task that reads the runtime's events. It marks pods and does nothing else, so that the
//! runtime never waits for this agent: containerd 2 starts and stops nothing while a reader stalls.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use rubelet_base::{Backoff, ErrorChain};
use rubelet_cri::{ContainerEvent, CriErrorKind, RuntimeService, v1::ContainerEventType};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::{
    cause::{Cause, event_name},
    handle::PlegHandle,
};

/// First and longest wait before a lost stream is made again; it is tried for ever.
const RETRY_INITIAL: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Wait before a runtime without events is queried again: it may have been replaced by another.
const UNSUPPORTED: Duration = Duration::from_secs(60);
/// A connection that lasted this long was a stream.
const LASTING: Duration = Duration::from_secs(1);
/// After so many streams in a row that ended at once, the runtime counts as one without events.
const EARLY_ENDS: u32 = 4;

/// Most identifiers, known from events alone, that are kept of a pod until its next inspection.
const LEARNED: usize = 64;

/// The end of a stream.
enum StreamEnd {
    /// The runtime has no events.
    Unsupported,
    /// It broke.
    Lost,
    /// The runtime closed it.
    Closed,
    /// It must be opened again.
    Renew,
    /// It is not relied on any more.
    Distrusted,
}

/// Reads events for ever.
pub(super) async fn read(runtime: Arc<dyn RuntimeService>, handle: PlegHandle) {
    let mut backoff = Backoff::new(RETRY_INITIAL, RETRY_MAX);
    let (mut early, mut told) = (0, false);
    loop {
        let began = Instant::now();
        let end = follow(&*runtime, &handle, &mut told).await;
        let lasting = began.elapsed() >= LASTING;
        if lasting {
            backoff.reset();
        }
        early = if lasting { 0 } else { early + 1 };
        let wait = match end {
            StreamEnd::Renew => {
                debug!("Opening the stream of events again");
                Duration::ZERO
            }
            StreamEnd::Lost => backoff.advance(),
            // As a runtime does that stops, or one that has events switched off.
            StreamEnd::Closed if early < EARLY_ENDS => backoff.advance(),
            StreamEnd::Closed | StreamEnd::Unsupported | StreamEnd::Distrusted => {
                if !told {
                    let why = match end {
                        StreamEnd::Distrusted => "some of its events do not arrive here",
                        _ => "the runtime offers none",
                    };
                    info!(why, "Relisting often, as events can not be used");
                    told = true;
                }
                UNSUPPORTED
            }
        };
        handle
            .shared
            .flow
            .lock()
            .cadence
            .disconnected(Instant::now());
        handle.shared.wake.notify_one();
        // `renew` ends the wait: the runtime is back, or another one took its place.
        if !wait.is_zero() && timeout(wait, handle.shared.renew.notified()).await.is_ok() {
            backoff.reset();
            early = 0;
        }
    }
}

/// Reads one stream to its end.
async fn follow(runtime: &dyn RuntimeService, handle: &PlegHandle, told: &mut bool) -> StreamEnd {
    let shared = &handle.shared;
    let began = Instant::now();
    let mut events = runtime.container_events();
    {
        let mut flow = shared.flow.lock();
        flow.start_events.forget();
        flow.cadence.connected(began);
        flow.distrusted = false;
    }
    shared.wake.notify_one();
    let mut settled = false;
    loop {
        // Cancel safety: a stream keeps what was not taken, Notify its permit.
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(event)) => {
                    // CRI acknowledges no subscription: the first event, or a second without an
                    // error, shows that there is a stream.
                    if !std::mem::replace(&mut settled, true) {
                        shared.metrics.pleg.connection_successes.inc();
                    }
                    handle.event(&event);
                }
                Some(Err(error)) if error.kind == CriErrorKind::Unimplemented => {
                    return StreamEnd::Unsupported;
                }
                Some(Err(error)) => {
                    shared.metrics.pleg.connection_errors.inc();
                    if settled && !error.is_unavailable() {
                        warn!(error = %ErrorChain(&error), "The stream of events broke");
                    }
                    return StreamEnd::Lost;
                }
                None => return StreamEnd::Closed,
            },
            () = shared.renew.notified() => {
                return if shared.flow.lock().distrusted { StreamEnd::Distrusted } else { StreamEnd::Renew };
            }
            () = sleep_until(began + LASTING), if !settled => {
                settled = true;
                *told = false;
                shared.metrics.pleg.connection_successes.inc();
                info!("Events of the runtime are followed");
            }
        }
    }
}

impl PlegHandle {
    /// Takes an event as a hint: marks the pod that it is about. The states in the event are not
    /// trusted.
    pub(super) fn event(&self, event: &ContainerEvent) {
        let metrics = &self.shared.metrics.pleg;
        metrics.event(event_name(event.kind));
        let now = self.shared.clock.now().as_nanosecond();
        let age = now.saturating_sub(i128::from(event.created_at)).max(0);
        if let Ok(age) = u64::try_from(age) {
            let age = Duration::from_nanos(age).as_secs_f64();
            metrics.connection_latency.observe(age);
        }
        // CREATED comes before the start and says nothing about it.
        if event.kind != ContainerEventType::ContainerCreatedEvent {
            self.shared.flow.lock().start_events.heard(&event.container);
        }
        // What the identifiers belong to is known better here than by the event.
        let known = {
            let index = self.shared.index.lock();
            let sandbox = event.sandbox.as_deref();
            let by_id = index.pod(&event.container);
            by_id
                .or_else(|| sandbox.and_then(|id| index.pod(id)))
                .cloned()
        };
        let indexed = known.is_some();
        let uid = known.or_else(|| event.pod_uid.as_deref().map(Into::into));
        let tracked = uid.and_then(|uid| self.shared.known(&uid));
        match tracked {
            Some(tracked) => self.mark_event(&tracked, event),
            // Of a pod that is gone, and of which this agent knew.
            None if indexed => {}
            None => {
                self.shared.flow.lock().cadence.unknown_pod(Instant::now());
                self.shared.wake.notify_one();
            }
        }
    }

    fn mark_event(&self, tracked: &super::tracked_pod::TrackedPod, event: &ContainerEvent) {
        use ContainerEventType as Kind;
        let seen = tracked.observation.borrow().pod.clone();
        let id = &*event.container;
        self.mark_pod(tracked, Cause::Event(event.kind), |marks| {
            // Compared with the number of a list: an event after it explains a difference in that
            // list.
            marks.last_event = self.shared.seq.next();
            let knows_sandbox = seen.sandboxes.iter().any(|it| it.id.as_str() == id)
                || marks.learned_sandboxes.contains(id);
            let knows_container = seen.containers.iter().any(|it| it.id.as_str() == id)
                || marks.learned_containers.contains_key(id);
            let learned = marks.learned_sandboxes.len() + marks.learned_containers.len();
            // Too many unknown identifiers, or one without its sandbox: only a list shows their
            // true state.
            let learns = learned < LEARNED;
            match (event.is_sandbox() || knows_sandbox, event.kind) {
                (true, Kind::ContainerStoppedEvent) if knows_sandbox => {
                    marks.changed_sandboxes.insert(id.into());
                }
                (true, Kind::ContainerDeletedEvent) if knows_sandbox => {
                    let sandbox = id.into();
                    marks.rechecks.sandbox_deleted(&sandbox, Instant::now());
                    marks.changed_sandboxes.insert(sandbox);
                }
                (false, Kind::ContainerDeletedEvent) if knows_container => {
                    marks.reread.insert(id.into());
                }
                // Nothing that could be wrong is recorded of it.
                (_, Kind::ContainerDeletedEvent) => {}
                (true, _) if learns => {
                    marks.learned_sandboxes.insert(id.into());
                }
                (true, _) => marks.needs_list |= !knows_sandbox,
                (false, _) if knows_container => {}
                (false, _) => match &event.sandbox {
                    Some(sandbox) if learns => {
                        let sandbox = sandbox.as_str().into();
                        marks.learned_containers.insert(id.into(), sandbox);
                    }
                    _ => marks.needs_list = true,
                },
            }
        });
    }
}

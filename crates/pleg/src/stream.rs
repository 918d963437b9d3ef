//! The task that reads the runtime's events. It marks pods and does nothing else, so that the
//! runtime never waits for this agent: containerd 2 starts and stops no container while a reader
//! stalls.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use rubelet_base::{Backoff, ErrorChain};
use rubelet_cri::{ContainerEvent, CriErrorKind, RuntimeService, v1::ContainerEventType};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::{
    cause::{InspectionCause, event_name},
    handle::PlegHandle,
};

/// First and longest wait before a lost stream is opened again; there is no limit on attempts.
const RETRY_INITIAL: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Wait before a stream is requested again from a runtime without events: another runtime may have
/// taken its place.
const UNSUPPORTED: Duration = Duration::from_secs(60);
/// Shortest duration of a stream that counts as established.
const LASTING: Duration = Duration::from_secs(1);
/// Number of streams that end at once, in a row, after which the runtime counts as one without
/// events.
const EARLY_ENDS: u32 = 4;

/// Maximum number of a pod's identifiers from events that are kept until its next inspection.
const LEARNED: usize = 64;

/// The reason why a stream ended.
enum StreamEnd {
    /// The runtime has no events.
    Unsupported,
    /// The connection failed.
    Lost,
    /// The runtime closed it.
    Closed,
    /// It must be opened again.
    Reconnect,
    /// It omits events and is not relied on any more.
    Incomplete,
}

/// Reads events for ever.
pub(super) async fn read(runtime: Arc<dyn RuntimeService>, handle: PlegHandle) {
    let mut backoff = Backoff::new(RETRY_INITIAL, RETRY_MAX);
    let (mut early, mut logged) = (0, false);
    loop {
        let began = Instant::now();
        let end = follow(&*runtime, &handle, &mut logged).await;
        let lasting = began.elapsed() >= LASTING;
        if lasting {
            backoff.reset();
        }
        early = if lasting { 0 } else { early + 1 };
        let wait = match end {
            StreamEnd::Reconnect => {
                debug!("Reopening the event stream");
                Duration::ZERO
            }
            StreamEnd::Lost => backoff.advance(),
            // A runtime that stops closes the stream; so does one with events disabled.
            StreamEnd::Closed if early < EARLY_ENDS => backoff.advance(),
            StreamEnd::Closed | StreamEnd::Unsupported | StreamEnd::Incomplete => {
                if !logged {
                    let reason = match end {
                        StreamEnd::Incomplete => "the event stream omits events",
                        _ => "the runtime does not support container events",
                    };
                    info!(reason, "Falling back to frequent relists");
                    logged = true;
                }
                UNSUPPORTED
            }
        };
        handle
            .shared
            .event_stream
            .lock()
            .schedule
            .disconnected(Instant::now());
        handle.shared.wake.notify_one();
        // `reconnect` ends the wait: the runtime is back, or another one has taken its place.
        if !wait.is_zero()
            && timeout(wait, handle.shared.reconnect.notified())
                .await
                .is_ok()
        {
            backoff.reset();
            early = 0;
        }
    }
}

/// Reads one stream to its end.
async fn follow(runtime: &dyn RuntimeService, handle: &PlegHandle, logged: &mut bool) -> StreamEnd {
    let shared = &handle.shared;
    let began = Instant::now();
    let mut events = runtime.container_events();
    {
        let mut event_stream = shared.event_stream.lock();
        event_stream.start_watchdog.forget();
        event_stream.schedule.connected(began);
        event_stream.incomplete = false;
    }
    shared.wake.notify_one();
    let mut settled = false;
    loop {
        // Cancel safety: a stream keeps events that were not taken, Notify its permit.
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(event)) => {
                    // CRI does not acknowledge a subscription: the stream counts as established
                    // after the first event, or a second without an error.
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
                        warn!(error = %ErrorChain(&error), "Event stream failed");
                    }
                    return StreamEnd::Lost;
                }
                None => return StreamEnd::Closed,
            },
            () = shared.reconnect.notified() => {
                return if shared.event_stream.lock().incomplete { StreamEnd::Incomplete } else { StreamEnd::Reconnect };
            }
            () = sleep_until(began + LASTING), if !settled => {
                settled = true;
                *logged = false;
                shared.metrics.pleg.connection_successes.inc();
                info!("Receiving events of the container runtime");
            }
        }
    }
}

impl PlegHandle {
    /// Takes an event as a hint: marks the pod that it names. The states in the event are not used.
    pub(super) fn event(&self, event: &ContainerEvent) {
        let metrics = &self.shared.metrics.pleg;
        metrics.event(event_name(event.kind));
        let now = self.shared.clock.now().as_nanosecond();
        let age = now.saturating_sub(i128::from(event.created_at)).max(0);
        if let Ok(age) = u64::try_from(age) {
            let age = Duration::from_nanos(age).as_secs_f64();
            metrics.connection_latency.observe(age);
        }
        // CREATED comes before the start.
        if event.kind != ContainerEventType::ContainerCreatedEvent {
            self.shared
                .event_stream
                .lock()
                .start_watchdog
                .event_received(&event.container);
        }
        // The index is more reliable than the pod UID in the event.
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
            // A late event of a pod that was removed.
            None if indexed => {}
            None => {
                self.shared
                    .event_stream
                    .lock()
                    .schedule
                    .unknown_pod(Instant::now());
                self.shared.wake.notify_one();
            }
        }
    }

    fn mark_event(&self, tracked: &super::tracked_pod::TrackedPod, event: &ContainerEvent) {
        use ContainerEventType as Kind;
        let seen = tracked.observation.borrow().pod.clone();
        let id = &*event.container;
        self.mark_pod(tracked, InspectionCause::Event(event.kind), |pending| {
            // Compared with the number of a list: an event after the list explains a difference.
            pending.last_event = self.shared.seq.next();
            let knows_sandbox = seen.sandboxes.iter().any(|it| it.id.as_str() == id)
                || pending.learned_sandboxes.contains(id);
            let knows_container = seen.containers.iter().any(|it| it.id.as_str() == id)
                || pending.learned_containers.contains_key(id);
            let learned = pending.learned_sandboxes.len() + pending.learned_containers.len();
            // Too many unknown identifiers, or one without its sandbox: only a list shows their
            // true state.
            let learns = learned < LEARNED;
            match (event.is_sandbox() || knows_sandbox, event.kind) {
                (true, Kind::ContainerStoppedEvent) if knows_sandbox => {
                    pending.changed_sandboxes.insert(id.into());
                }
                (true, Kind::ContainerDeletedEvent) if knows_sandbox => {
                    let sandbox = id.into();
                    pending
                        .unsettled
                        .rechecks
                        .sandbox_deleted(&sandbox, Instant::now());
                    pending.changed_sandboxes.insert(sandbox);
                }
                (false, Kind::ContainerDeletedEvent) if knows_container => {
                    pending.reread.insert(id.into());
                }
                // Nothing that could be wrong is recorded of it.
                (_, Kind::ContainerDeletedEvent) => {}
                (true, _) if learns => {
                    pending.learned_sandboxes.insert(id.into());
                }
                (true, _) => pending.needs_list |= !knows_sandbox,
                (false, _) if knows_container => {}
                (false, _) => match &event.sandbox {
                    Some(sandbox) if learns => {
                        let sandbox = sandbox.as_str().into();
                        pending.learned_containers.insert(id.into(), sandbox);
                    }
                    _ => pending.needs_list = true,
                },
            }
        });
    }
}

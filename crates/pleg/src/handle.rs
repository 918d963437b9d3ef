//! The API of PLEG for the rest of the agent.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rubelet_base::{ContainerId, PodName, PodUid, SandboxId, Seq, seq::SeqSource};
use rubelet_cri::ChangedObject;
use rubelet_node_state::{clock::Clock, metrics::NodeMetrics};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout_at},
};
use tracing::info;

use super::{
    cause::InspectionCause,
    counts::RunningCounts,
    health::RuntimeActivity,
    index::PodIndex,
    kernel_oom_kills::KernelOomKills,
    observation::Observation,
    queue::{FAST_SLOTS, HUNG_SLOTS, SLOW_SLOTS, WorkQueue},
    record::LifecycleRecord,
    relist_schedule::RelistSchedule,
    start_event_watchdog::StartEventWatchdog,
    trace::{Trace, TraceEvent},
    tracked_pod::{InspectionRequest, PendingChanges, TrackedPod},
};

/// Shortest sleep that counts as a suspend: the two clocks are not read at the same instant.
const SUSPENDED: Duration = Duration::from_millis(500);

/// A pod that the runtime has a sandbox or container of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimePod {
    /// Its UID, from the label.
    pub uid: PodUid,
    /// Its namespace and name, from the labels.
    pub name: PodName,
    /// The longest termination grace period of its containers, from their annotations.
    pub grace: Option<Duration>,
    /// The annotation `kubernetes.io/config.source`.
    pub source: Option<Box<str>>,
}

/// The outcome of the last relist.
#[derive(Debug, Clone, Default)]
pub struct RelistState {
    /// Sequence number of the last complete list, taken before it; `Seq::ZERO` before the first.
    pub seq: Seq,
    /// Start of the list by tokio's clock.
    pub at: Option<Instant>,
    /// All pods in the list, by UID.
    pub pods: Arc<Vec<RuntimePod>>,
}

/// Marks pods and waits for observations. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PlegHandle {
    pub(super) shared: Arc<PlegShared>,
}

/// Pods whose inspections hang, with the reason of each.
pub type Quarantine = Arc<BTreeMap<PodUid, Arc<str>>>;

#[derive(Debug)]
pub(super) struct PlegShared {
    // Order of locks: `pods`, then a pod's pending changes, then its observation; `pods` before the
    // queue; `event_stream` before `activity`. The queue and `event_stream` are locked only after
    // the pending changes are released.
    pub(super) seq: SeqSource,
    pub(super) pods: Mutex<HashMap<PodUid, Arc<TrackedPod>>>,
    /// Pods that wait for an inspection or are being inspected.
    pub(super) queue: Mutex<WorkQueue<PodUid>>,
    /// Wakes the task: a pod is ready in the queue, a slot is free, or a timer has changed.
    pub(super) wake: Notify,
    pub(super) relist: watch::Sender<RelistState>,
    pub(super) index: Mutex<PodIndex>,
    pub(super) event_stream: Mutex<EventStreamState>,
    /// Wakes the reader of events to open the stream again.
    pub(super) reconnect: Notify,
    pub(super) activity: Mutex<RuntimeActivity>,
    pub(super) counts: Mutex<RunningCounts>,
    pub(super) kernel_oom_kills: Mutex<KernelOomKills>,
    pub(super) quarantine: watch::Sender<Quarantine>,
    /// The reason why the runtime counts as slow; `None` while it does not.
    pub(super) slow: watch::Sender<Option<Arc<str>>>,
    pub(super) record: LifecycleRecord,
    pub(super) metrics: Arc<NodeMetrics>,
    pub(super) clock: Clock,
    pub(super) trace: Trace,
}

/// The state of the runtime's event stream, and the schedule of relists that depends on it.
#[derive(Debug)]
pub(super) struct EventStreamState {
    pub(super) schedule: RelistSchedule,
    pub(super) start_watchdog: StartEventWatchdog,
    /// True if the stream omits events, so that they are not relied on.
    pub(super) incomplete: bool,
    /// Start of the last relist.
    pub(super) relisted: Option<Instant>,
    /// Start of the relist in progress.
    pub(super) relisting: Option<Instant>,
    /// Total sleep of the machine at the last check.
    pub(super) asleep: Duration,
}

impl PlegHandle {
    pub(super) fn new(polling: Duration, clock: Clock, metrics: Arc<NodeMetrics>) -> Self {
        let now = Instant::now();
        Self {
            shared: Arc::new(PlegShared {
                seq: SeqSource::default(),
                pods: Mutex::default(),
                queue: Mutex::new(WorkQueue::new([FAST_SLOTS, SLOW_SLOTS, HUNG_SLOTS])),
                wake: Notify::new(),
                relist: watch::Sender::default(),
                index: Mutex::default(),
                event_stream: Mutex::new(EventStreamState {
                    schedule: RelistSchedule::new(polling, now),
                    start_watchdog: StartEventWatchdog::default(),
                    incomplete: false,
                    relisted: None,
                    relisting: None,
                    asleep: clock.asleep(),
                }),
                reconnect: Notify::new(),
                activity: Mutex::new(RuntimeActivity::new(now)),
                counts: Mutex::default(),
                kernel_oom_kills: Mutex::default(),
                quarantine: watch::Sender::default(),
                slow: watch::Sender::default(),
                record: LifecycleRecord::default(),
                metrics,
                clock,
                trace: Trace::default(),
            }),
        }
    }

    /// Takes a sequence number; it is larger than that of every inspection that has begun.
    #[must_use]
    pub fn now(&self) -> Seq {
        self.shared.seq.next()
    }

    /// The outcome of relists, level-triggered: it changes when the pods do.
    #[must_use]
    pub fn relists(&self) -> watch::Receiver<RelistState> {
        self.shared.relist.subscribe()
    }

    /// The newest lifecycle events.
    #[must_use]
    pub fn record(&self) -> &LifecycleRecord {
        &self.shared.record
    }

    /// Pods whose inspections hang, level-triggered.
    #[must_use]
    pub fn quarantine(&self) -> watch::Receiver<Quarantine> {
        self.shared.quarantine.subscribe()
    }

    /// The reason why the runtime counts as slow although it answers; level-triggered.
    #[must_use]
    pub fn slow(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.shared.slow.subscribe()
    }

    /// The reason why the runtime as a whole counts as down; `None` while it responds.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.shared.activity.lock().problem(Instant::now())
    }

    /// Records that the runtime responded to a call.
    pub fn answered(&self) {
        self.shared.activity.lock().answered = Some(Instant::now());
    }

    /// Follows the observations of a pod. Before the first inspection the observation is empty,
    /// with the number of the last complete list.
    #[must_use]
    pub fn observe(&self, uid: &PodUid, name: &PodName) -> watch::Receiver<Observation> {
        let tracked = self.track(uid);
        // The name of a UID never changes.
        let _ = tracked.name.set(name.clone());
        tracked.observation.subscribe()
    }

    /// Marks the pod after a step of this agent: it is inspected soon.
    pub fn mark(&self, uid: &PodUid) {
        self.mark_step(uid, |_| {});
    }

    /// Marks the pod after a call with an unknown outcome: the next inspection lists first, as
    /// there may be objects whose identifiers are unknown.
    pub fn mark_unknown(&self, uid: &PodUid) {
        self.mark_step(uid, |pending| pending.needs_list = true);
    }

    /// Adds a sandbox that this agent created.
    pub fn learned_sandbox(&self, uid: &PodUid, id: &SandboxId) {
        self.mark_step(uid, |pending| {
            pending.learned_sandboxes.insert(id.clone());
        });
    }

    /// Adds a container that this agent created in that sandbox.
    pub fn learned_container(&self, uid: &PodUid, id: &ContainerId, sandbox: &SandboxId) {
        self.mark_step(uid, |pending| {
            pending
                .learned_containers
                .insert(id.clone(), sandbox.clone());
        });
    }

    /// Notes that this agent stopped or removed a sandbox.
    pub fn changed_sandbox(&self, uid: &PodUid, id: &SandboxId) {
        self.mark_step(uid, |pending| {
            pending.changed_sandboxes.insert(id.clone());
        });
    }

    /// Notes that this agent removed a container.
    pub fn removed_container(&self, uid: &PodUid, id: &ContainerId) {
        self.mark_step(uid, |pending| {
            pending.removed_containers.insert(id.clone());
        });
    }

    /// The kernel says that it kills in this container for lack of memory. Then an exit by SIGKILL has the reason
    /// `OOMKilled` also if the runtime does not say so.
    pub fn note_oom_kill(&self, container: ContainerId) {
        self.shared.kernel_oom_kills.lock().note(container);
    }

    /// Notes that this agent is about to call StartContainer.
    pub fn starting(&self, id: &ContainerId) {
        self.shared.event_stream.lock().start_watchdog.called(id);
    }

    /// Notes the response to StartContainer.
    pub fn started(&self, uid: &PodUid, id: &ContainerId, is_ok: bool) {
        let due = {
            let mut event_stream = self.shared.event_stream.lock();
            let relied_on = event_stream.schedule.relies_on_events();
            event_stream
                .start_watchdog
                .answered(id, is_ok && relied_on, Instant::now())
        };
        if due {
            self.shared.wake.notify_one();
        }
        self.mark(uid);
    }

    /// Notes a response that came after its caller stopped waiting, if only an error: the call may
    /// have changed `changed`, or created an object whose identifier is unknown.
    pub fn answered_late(&self, changed: &ChangedObject) {
        let uid = match changed {
            ChangedObject::Pod(uid) => Some(uid.as_str().into()),
            ChangedObject::Sandbox(id) | ChangedObject::Container(id) => {
                self.shared.index.lock().pod(id).cloned()
            }
        };
        let Some(tracked) = uid.and_then(|uid| self.shared.known(&uid)) else {
            // The pod was removed; a relist finds what the call created, and it is removed, too.
            self.shared
                .event_stream
                .lock()
                .schedule
                .unknown_pod(Instant::now());
            return self.shared.wake.notify_one();
        };
        self.mark_pod(&tracked, InspectionCause::Step, |pending| {
            pending.needs_list = true;
            match changed {
                ChangedObject::Pod(_) => {}
                ChangedObject::Sandbox(id) => {
                    pending.changed_sandboxes.insert(id.as_str().into());
                }
                ChangedObject::Container(id) => {
                    pending.reread.insert(id.as_str().into());
                }
            }
        });
    }

    /// Relists now, as the runtime is back, and subscribes to events if no stream is open.
    pub fn relist_now(&self) {
        let without_events = {
            let mut event_stream = self.shared.event_stream.lock();
            event_stream.schedule.at_once(Instant::now());
            !event_stream.schedule.relies_on_events()
        };
        self.shared.wake.notify_one();
        if without_events {
            self.shared.reconnect.notify_one();
        }
    }

    /// Relists now, and often for a while, if the machine was suspended since the last call. Called
    /// whenever a task is awake anyway.
    pub fn look_for_suspend(&self) {
        let asleep = self.shared.clock.asleep();
        let slept = {
            let mut event_stream = self.shared.event_stream.lock();
            let slept = asleep.saturating_sub(event_stream.asleep);
            event_stream.asleep = asleep;
            if slept < SUSPENDED {
                return;
            }
            event_stream.schedule.suspect(Instant::now());
            slept
        };
        info!(?slept, "Machine was suspended, relisting all containers");
        self.shared.wake.notify_one();
    }

    /// Notes that the pod's task begins to handle the observation with this number. Until
    /// [`Self::sync_ended`], the pod is inspected at most once a second.
    pub fn sync_began(&self, uid: &PodUid, seq: Seq) {
        self.shared
            .trace
            .note(|| TraceEvent::Handed(uid.clone(), seq));
        let Some(tracked) = self.shared.known(uid) else {
            return;
        };
        self.shared.queue.lock().hold(uid);
        let now = Instant::now();
        for unsynced in tracked
            .pending()
            .unsynced
            .iter_mut()
            .filter(|unsynced| unsynced.seq <= seq)
        {
            if std::mem::replace(&mut unsynced.begun, true) {
                continue;
            }
            if let Some(at) = unsynced.event_at {
                let took = now.saturating_duration_since(at).as_secs_f64();
                self.shared.metrics.pleg.event_to_sync.observe(took);
            }
            let took = now.saturating_duration_since(unsynced.delivered);
            self.shared
                .record
                .change(unsynced.number, |event| event.to_start = Some(took));
        }
    }

    /// Notes that the pod's task has executed its steps. Returns a sequence number taken now.
    pub fn sync_ended(&self, uid: &PodUid) -> Seq {
        let end = self.now();
        self.shared
            .trace
            .note(|| TraceEvent::Done(uid.clone(), end));
        let Some(tracked) = self.shared.known(uid) else {
            return end;
        };
        let now = Instant::now();
        let done: Vec<_> = tracked
            .pending()
            .unsynced
            .extract_if(.., |unsynced| unsynced.begun)
            .collect();
        for unsynced in done {
            let took = now.saturating_duration_since(unsynced.delivered);
            self.shared
                .record
                .change(unsynced.number, |event| event.to_sync = Some(took));
        }
        let is_ready = self.shared.queue.lock().release(uid, now);
        if is_ready {
            self.shared.wake.notify_one();
        }
        end
    }

    /// Drops the record of a removed pod.
    pub fn forget(&self, uid: &PodUid) {
        let tracked = {
            let mut pods = self.shared.pods.lock();
            let Some(tracked) = pods.remove(uid) else {
                return;
            };
            // At once: what is added later is of a new pod with this UID, or dropped by
            // `next_ready`.
            self.shared.queue.lock().forget(uid);
            tracked
        };
        // A later list that names the pod after all must count as a change, so the pod is removed
        // here: a list that equals the records does not replace `pods`.
        self.shared.relist.send_if_modified(|state| {
            if state.pods.iter().any(|found| found.uid == *uid) {
                let others = state.pods.iter().filter(|found| found.uid != *uid);
                state.pods = Arc::new(others.cloned().collect());
            }
            false
        });
        self.shared
            .trace
            .note(|| TraceEvent::Forgotten(uid.clone()));
        let last = Arc::clone(&tracked.observation.borrow().pod);
        self.shared.index.lock().forget(&last);
        self.shared.count(&last, &Default::default());
        self.shared.release_pod(uid);
    }

    /// Waits for an observation that began after `after`; requests an inspection if there is none
    /// yet. Failed inspections are repeated with backoff until one succeeds.
    pub async fn newer_than(
        &self,
        uid: &PodUid,
        observations: &mut watch::Receiver<Observation>,
        after: Seq,
    ) -> Observation {
        if observations.borrow().seq <= after {
            self.mark_as(uid, InspectionCause::Requested, |_| {});
        }
        let seen = observations
            .wait_for(|seen| seen.seq > after)
            .await
            .map(|seen| seen.clone());
        match seen {
            Ok(seen) => seen,
            // The pod was forgotten: no observation will follow.
            Err(_) => std::future::pending().await,
        }
    }

    pub(super) fn track(&self, uid: &PodUid) -> Arc<TrackedPod> {
        let listed = self.shared.relist.borrow().seq;
        Arc::clone(
            self.shared
                .pods
                .lock()
                .entry(uid.clone())
                .or_insert_with(|| Arc::new(TrackedPod::new(uid.clone(), listed))),
        )
    }

    /// Creates the record of a pod that a list names. Until the first inspection it does not state
    /// that the pod is absent.
    pub(super) fn track_listed(&self, uid: &PodUid) {
        let new = || Arc::new(TrackedPod::new(uid.clone(), Seq::ZERO));
        self.shared
            .pods
            .lock()
            .entry(uid.clone())
            .or_insert_with(new);
    }

    /// Number of kept entries: pods, identifiers, causes, lifecycle events.
    #[must_use]
    pub fn kept(&self) -> usize {
        let shared = &self.shared;
        let pods: Vec<_> = shared.pods.lock().values().cloned().collect();
        let pending = pods.iter().map(|tracked| {
            let pending = tracked.pending();
            let learned = pending.learned_sandboxes.len() + pending.learned_containers.len();
            let changed = pending.changed_sandboxes.len() + pending.removed_containers.len();
            learned
                + changed
                + pending.reread.len()
                + pending.unsynced.len()
                + pending.unsettled.rechecks.len()
        });
        let pending: usize = pending.sum();
        let (queue, index) = (shared.queue.lock().len(), shared.index.lock().len());
        let start_watchdog = shared.event_stream.lock().start_watchdog.len();
        pods.len() + pending + queue + index + start_watchdog + self.record().board().list().len()
    }

    /// Starts to record entries for [`PlegHandle::take_trace`], which must be called again and
    /// again, as the trace grows without a bound.
    pub fn start_trace(&self) {
        self.shared.trace.start();
    }

    /// Takes the entries since the last call; none before [`PlegHandle::start_trace`].
    #[must_use]
    pub fn take_trace(&self) -> Vec<TraceEvent> {
        self.shared.trace.take()
    }

    fn mark_step(&self, uid: &PodUid, change: impl FnOnce(&mut PendingChanges)) {
        self.mark_as(uid, InspectionCause::Step, change);
        self.shared.trace.note(|| TraceEvent::Stepped(uid.clone()));
    }

    pub(super) fn mark_as(
        &self,
        uid: &PodUid,
        cause: InspectionCause,
        change: impl FnOnce(&mut PendingChanges),
    ) {
        self.mark_pod(&self.track(uid), cause, change);
    }

    pub(super) fn mark_pod(
        &self,
        tracked: &TrackedPod,
        cause: InspectionCause,
        change: impl FnOnce(&mut PendingChanges),
    ) {
        let number = {
            let mut pending = tracked.pending();
            change(&mut pending);
            pending.request.join(InspectionRequest {
                cause: Some(cause),
                event_at: matches!(cause, InspectionCause::Event(_)).then(Instant::now),
            });
            // Taken under the lock, as that of an inspection is: one with a larger number has
            // planned with this change.
            pending.changed = self.shared.seq.next();
            pending.changed
        };
        let mut queue = self.shared.queue.lock();
        let is_ready = queue.add(&tracked.uid, cause.priority(), number, Instant::now());
        drop(queue);
        if is_ready {
            self.shared.wake.notify_one();
        }
    }
}

impl PlegShared {
    /// The record of a pod, if there is one.
    pub(super) fn known(&self, uid: &PodUid) -> Option<Arc<TrackedPod>> {
        self.pods.lock().get(uid).cloned()
    }

    /// Waits until a pod may be ready in the queue, or one of the task's timers has changed. Cancel
    /// safety: Notify keeps its permit, and each call reads the time of the queue.
    pub(super) async fn woken(&self) {
        let next_at = self.queue.lock().next_at();
        let woken = self.wake.notified();
        match next_at {
            Some(at) => {
                let _ = timeout_at(at, woken).await;
            }
            None => woken.await,
        }
    }

    /// Replaces the counts of one pod.
    pub(super) fn count(
        &self,
        old: &rubelet_pod_plan::ObservedPod,
        new: &rubelet_pod_plan::ObservedPod,
    ) {
        let mut counts = self.counts.lock();
        counts.replace(old, new);
        self.metrics
            .pleg
            .set_running(counts.pods, &counts.containers());
    }

    /// Puts a pod into quarantine.
    pub(super) fn quarantine_pod(&self, uid: &PodUid, text: &Arc<str>) {
        self.quarantine.send_if_modified(|pods| {
            if pods.contains_key(uid) {
                return false;
            }
            Arc::make_mut(pods).insert(uid.clone(), Arc::clone(text));
            true
        });
    }

    /// Takes a pod out of quarantine.
    pub(super) fn release_pod(&self, uid: &PodUid) {
        self.quarantine.send_if_modified(|pods| {
            pods.contains_key(uid) && Arc::make_mut(pods).remove(uid).is_some()
        });
    }
}

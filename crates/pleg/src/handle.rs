//! The side of PLEG that the rest of the agent holds.

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
    time::Instant,
};
use tracing::info;

use super::{
    cadence::Cadence,
    cause::Cause,
    counts::Counts,
    health::RuntimeActivity,
    index::Index,
    inspection_queue::Urgency,
    observation::Observation,
    record::LifecycleRecord,
    start_events::StartEvents,
    trace::{Trace, Traced},
    tracked_pod::{Marks, Request, TrackedPod},
};

/// A machine that slept for less was not suspended: the two clocks are read one after the other.
const SUSPENDED: Duration = Duration::from_millis(500);

/// A pod of which the runtime has a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimePod {
    /// Its UID, from the label.
    pub uid: PodUid,
    /// Its namespace and name, from the labels.
    pub name: PodName,
    /// The longest termination grace that its containers were made with.
    pub grace: Option<Duration>,
    /// The annotation `kubernetes.io/config.source`.
    pub source: Option<Box<str>>,
}

/// The outcome of the last relist.
#[derive(Debug, Clone, Default)]
pub struct RelistState {
    /// When the last complete list began; `Seq::ZERO` before the first.
    pub seq: Seq,
    /// When it began by tokio's clock.
    pub at: Option<Instant>,
    /// All pods it named, by UID.
    pub pods: Arc<Vec<RuntimePod>>,
}

/// Marks pods and waits for observations. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PlegHandle {
    pub(super) shared: Arc<Shared>,
}

/// Pods whose inspections hang, with the reason of each.
pub type Quarantine = Arc<BTreeMap<PodUid, Arc<str>>>;

#[derive(Debug)]
pub(super) struct Shared {
    // Order of locks: `pods`, then a pod's marks, then its observation; `flow` before `activity`.
    // The queue and `flow` are taken only after the marks are released.
    pub(super) seq: SeqSource,
    pub(super) pods: Mutex<HashMap<PodUid, Arc<TrackedPod>>>,
    /// Pods to be inspected, which the task moves to the queues of its slots.
    pub(super) queue: Mutex<BTreeMap<PodUid, Urgency>>,
    pub(super) wake: Notify,
    pub(super) relist: watch::Sender<RelistState>,
    pub(super) index: Mutex<Index>,
    pub(super) flow: Mutex<EventFlow>,
    /// The stream of events must be opened, or tried, again.
    pub(super) renew: Notify,
    pub(super) activity: Mutex<RuntimeActivity>,
    pub(super) counts: Mutex<Counts>,
    pub(super) quarantine: watch::Sender<Quarantine>,
    /// The reason why the runtime counts as slow; `None` while it does not.
    pub(super) slow: watch::Sender<Option<Arc<str>>>,
    pub(super) record: LifecycleRecord,
    pub(super) metrics: Arc<NodeMetrics>,
    pub(super) clock: Clock,
    pub(super) trace: Trace,
}

/// The state of the flow of events, and so of the next relist.
#[derive(Debug)]
pub(super) struct EventFlow {
    pub(super) cadence: Cadence,
    pub(super) start_events: StartEvents,
    /// The events are not relied on, although they come.
    pub(super) distrusted: bool,
    /// When the last relist began.
    pub(super) relisted: Option<Instant>,
    /// When the relist began that is under way.
    pub(super) relisting: Option<Instant>,
    /// How long the machine had slept at the last check.
    pub(super) asleep: Duration,
}

impl PlegHandle {
    pub(super) fn new(polling: Duration, clock: Clock, metrics: Arc<NodeMetrics>) -> Self {
        let now = Instant::now();
        Self {
            shared: Arc::new(Shared {
                seq: SeqSource::default(),
                pods: Mutex::default(),
                queue: Mutex::default(),
                wake: Notify::new(),
                relist: watch::Sender::default(),
                index: Mutex::default(),
                flow: Mutex::new(EventFlow {
                    cadence: Cadence::new(polling, now),
                    start_events: StartEvents::default(),
                    distrusted: false,
                    relisted: None,
                    relisting: None,
                    asleep: clock.asleep(),
                }),
                renew: Notify::new(),
                activity: Mutex::new(RuntimeActivity::new(now)),
                counts: Mutex::default(),
                quarantine: watch::Sender::default(),
                slow: watch::Sender::default(),
                record: LifecycleRecord::default(),
                metrics,
                clock,
                trace: Trace::default(),
            }),
        }
    }

    /// Takes a number that is larger than that of every inspection which has begun.
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

    /// Why the runtime as a whole counts as gone; `None` while it answers.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.shared.activity.lock().problem(Instant::now())
    }

    /// The runtime answered a call.
    pub fn answered(&self) {
        self.shared.activity.lock().answered = Some(Instant::now());
    }

    /// Follows the observations of a pod. Before the first inspection the observation is that the
    /// runtime has nothing of the pod, as of the last complete list.
    #[must_use]
    pub fn observe(&self, uid: &PodUid, name: &PodName) -> watch::Receiver<Observation> {
        let tracked = self.track(uid);
        // The name of a UID never changes.
        let _ = tracked.name.set(name.clone());
        tracked.observation.subscribe()
    }

    /// A step of this agent ended: inspect the pod soon.
    pub fn mark(&self, uid: &PodUid) {
        self.mark_step(uid, |_| {});
    }

    /// A call's outcome is unknown: identifiers may exist that nobody knows.
    pub fn mark_unknown(&self, uid: &PodUid) {
        self.mark_step(uid, |marks| marks.needs_list = true);
    }

    /// This agent made a sandbox.
    pub fn learned_sandbox(&self, uid: &PodUid, id: &SandboxId) {
        self.mark_step(uid, |marks| {
            marks.learned_sandboxes.insert(id.clone());
        });
    }

    /// This agent made a container in that sandbox.
    pub fn learned_container(&self, uid: &PodUid, id: &ContainerId, sandbox: &SandboxId) {
        self.mark_step(uid, |marks| {
            marks.learned_containers.insert(id.clone(), sandbox.clone());
        });
    }

    /// This agent stopped or removed a sandbox.
    pub fn changed_sandbox(&self, uid: &PodUid, id: &SandboxId) {
        self.mark_step(uid, |marks| {
            marks.changed_sandboxes.insert(id.clone());
        });
    }

    /// This agent removed a container.
    pub fn removed_container(&self, uid: &PodUid, id: &ContainerId) {
        self.mark_step(uid, |marks| {
            marks.removed_containers.insert(id.clone());
        });
    }

    /// This agent is about to start a container.
    pub fn starting(&self, id: &ContainerId) {
        self.shared.flow.lock().start_events.called(id);
    }

    /// The start was answered.
    pub fn started(&self, uid: &PodUid, id: &ContainerId, is_ok: bool) {
        let due = {
            let mut flow = self.shared.flow.lock();
            let relied_on = flow.cadence.relies_on_events();
            flow.start_events
                .answered(id, is_ok && relied_on, Instant::now())
        };
        if due {
            self.shared.wake.notify_one();
        }
        self.mark(uid);
    }

    /// A call that changes `changed` was answered, or failed, after its caller stopped waiting: it
    /// may have left something that nobody knows of.
    pub fn answered_late(&self, changed: &ChangedObject) {
        let uid = match changed {
            ChangedObject::Pod(uid) => Some(uid.as_str().into()),
            ChangedObject::Sandbox(id) | ChangedObject::Container(id) => {
                self.shared.index.lock().pod(id).cloned()
            }
        };
        let Some(tracked) = uid.and_then(|uid| self.shared.known(&uid)) else {
            // Of a pod that is gone: what was made for it goes, too.
            self.shared.flow.lock().cadence.unknown_pod(Instant::now());
            return self.shared.wake.notify_one();
        };
        self.mark_pod(&tracked, Cause::Step, |marks| {
            marks.needs_list = true;
            match changed {
                ChangedObject::Pod(_) => {}
                ChangedObject::Sandbox(id) => {
                    marks.changed_sandboxes.insert(id.as_str().into());
                }
                ChangedObject::Container(id) => {
                    marks.reread.insert(id.as_str().into());
                }
            }
        });
    }

    /// The runtime is back: relist now, and subscribe to events if no stream is open.
    pub fn relist_now(&self) {
        let deaf = {
            let mut flow = self.shared.flow.lock();
            flow.cadence.at_once(Instant::now());
            !flow.cadence.relies_on_events()
        };
        self.shared.wake.notify_one();
        if deaf {
            self.shared.renew.notify_one();
        }
    }

    /// Relists now, and often for a while, if the machine was suspended since the last time. Called
    /// at every occasion at which something is awake anyway.
    pub fn look_for_suspend(&self) {
        let asleep = self.shared.clock.asleep();
        let slept = {
            let mut flow = self.shared.flow.lock();
            let slept = asleep.saturating_sub(flow.asleep);
            flow.asleep = asleep;
            if slept < SUSPENDED {
                return;
            }
            flow.cadence.suspect(Instant::now());
            slept
        };
        info!(
            ?slept,
            "The machine was suspended; all containers are listed"
        );
        self.shared.wake.notify_one();
    }

    /// The pod's task begins to work on its latest observation. Until it ends, the pod is inspected
    /// at most once a second.
    pub fn sync_began(&self, uid: &PodUid, seq: Seq) {
        self.shared.trace.note(|| Traced::Handed(uid.clone(), seq));
        let Some(tracked) = self.shared.known(uid) else {
            return;
        };
        let now = Instant::now();
        let mut marks = tracked.marks();
        marks.busy = true;
        for unsynced in marks
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

    /// The pod's task has done what it had to. Returns the number of that moment.
    pub fn sync_ended(&self, uid: &PodUid) -> Seq {
        let end = self.now();
        self.shared.trace.note(|| Traced::Done(uid.clone(), end));
        let Some(tracked) = self.shared.known(uid) else {
            return end;
        };
        let now = Instant::now();
        let mut marks = tracked.marks();
        marks.busy = false;
        let again = std::mem::take(&mut marks.held).then_some(marks.request.urgency);
        let done: Vec<_> = marks
            .unsynced
            .extract_if(.., |unsynced| unsynced.begun)
            .collect();
        drop(marks);
        for unsynced in done {
            let took = now.saturating_duration_since(unsynced.delivered);
            self.shared
                .record
                .change(unsynced.number, |event| event.to_sync = Some(took));
        }
        if let Some(urgency) = again {
            self.shared.enqueue(uid, urgency);
        }
        end
    }

    /// Drops the record of a pod of which nothing is left.
    pub fn forget(&self, uid: &PodUid) {
        let Some(tracked) = self.shared.pods.lock().remove(uid) else {
            return;
        };
        // If a later list names it after all, that is news. Lists between the two find nothing that
        // differs from the records, and leave the names as they are.
        self.shared.relist.send_if_modified(|state| {
            if state.pods.iter().any(|found| found.uid == *uid) {
                let others = state.pods.iter().filter(|found| found.uid != *uid);
                state.pods = Arc::new(others.cloned().collect());
            }
            false
        });
        self.shared.trace.note(|| Traced::Forgotten(uid.clone()));
        let last = Arc::clone(&tracked.observation.borrow().pod);
        self.shared.index.lock().forget(&last);
        self.shared.count(&last, &Default::default());
        self.shared.release_pod(uid);
    }

    /// Waits for an observation that began after `after`; requests an inspection if there is none
    /// yet. Failed inspections are repeated with backoff until one succeeds.
    pub async fn newer(
        &self,
        uid: &PodUid,
        observations: &mut watch::Receiver<Observation>,
        after: Seq,
    ) -> Observation {
        if observations.borrow().seq <= after {
            self.mark_as(uid, Cause::Demand, |_| {});
        }
        let seen = observations
            .wait_for(|seen| seen.seq > after)
            .await
            .map(|seen| seen.clone());
        match seen {
            Ok(seen) => seen,
            // The pod was forgotten: nobody will ever write it again.
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

    /// The record of a pod that a list names. Before the first inspection it claims nothing about
    /// the pod, least of all that it is absent.
    pub(super) fn track_listed(&self, uid: &PodUid) {
        let new = || Arc::new(TrackedPod::new(uid.clone(), Seq::ZERO));
        self.shared
            .pods
            .lock()
            .entry(uid.clone())
            .or_insert_with(new);
    }

    /// How much is kept: pods, identifiers, causes, lifecycle events.
    #[must_use]
    pub fn kept(&self) -> usize {
        let shared = &self.shared;
        let pods: Vec<_> = shared.pods.lock().values().cloned().collect();
        let marks = pods.iter().map(|tracked| {
            let marks = tracked.marks();
            let learned = marks.learned_sandboxes.len() + marks.learned_containers.len();
            let changed = marks.changed_sandboxes.len() + marks.removed_containers.len();
            learned + changed + marks.reread.len() + marks.unsynced.len() + marks.rechecks.len()
        });
        let marks: usize = marks.sum();
        let (queue, index) = (shared.queue.lock().len(), shared.index.lock().len());
        let start_events = shared.flow.lock().start_events.len();
        pods.len() + marks + queue + index + start_events + self.record().board().list().len()
    }

    /// Keeps what is reported to whom from now on, for [`PlegHandle::take_trace`]: its reader must not stop.
    pub fn start_trace(&self) {
        self.shared.trace.start();
    }

    /// What was reported to whom since the last time; nothing before [`PlegHandle::start_trace`].
    #[must_use]
    pub fn take_trace(&self) -> Vec<Traced> {
        self.shared.trace.take()
    }

    fn mark_step(&self, uid: &PodUid, change: impl FnOnce(&mut Marks)) {
        self.mark_as(uid, Cause::Step, change);
        self.shared.trace.note(|| Traced::Stepped(uid.clone()));
    }

    pub(super) fn mark_as(&self, uid: &PodUid, cause: Cause, change: impl FnOnce(&mut Marks)) {
        self.mark_pod(&self.track(uid), cause, change);
    }

    pub(super) fn mark_pod(
        &self,
        tracked: &TrackedPod,
        cause: Cause,
        change: impl FnOnce(&mut Marks),
    ) {
        let urgency = {
            let mut marks = tracked.marks();
            change(&mut marks);
            marks.request.join(Request {
                cause: Some(cause),
                event_at: matches!(cause, Cause::Event(_)).then(Instant::now),
                urgency: cause.urgency(),
            });
            if !marks.inspection.mark(&self.shared.seq) {
                return;
            }
            marks.request.urgency
        };
        self.shared.enqueue(&tracked.uid, urgency);
    }
}

impl Shared {
    /// The record of a pod, if there is one.
    pub(super) fn known(&self, uid: &PodUid) -> Option<Arc<TrackedPod>> {
        self.pods.lock().get(uid).cloned()
    }

    pub(super) fn enqueue(&self, uid: &PodUid, urgency: Urgency) {
        {
            let mut queue = self.queue.lock();
            let waits = queue.entry(uid.clone()).or_default();
            *waits = urgency.max(*waits);
        }
        self.wake.notify_one();
    }

    pub(super) fn take_queue(&self) -> BTreeMap<PodUid, Urgency> {
        std::mem::take(&mut *self.queue.lock())
    }

    /// Counts what runs now instead of what ran.
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

//! The task that starts, updates and ends pod tasks.

mod abandoned;
mod counts;
mod waiting;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use rubelet_api::pod::{Pod, PodSource};
use rubelet_base::{Backoff, PodName, PodUid, Seq};
use rubelet_node_plan::node_shutdown::NODE_SHUTDOWN;
use rubelet_node_state::{
    cluster_view::NODE_AFFINITY,
    events::{EventType, Subject},
    heartbeat::{HEARTBEAT, Heartbeat},
    pod_board::{PodBoard, PodEntry},
    shutdown_state::ShutdownState,
};
use rubelet_pleg::{RelistState, RuntimePod};
use rubelet_pod_plan::history::ReplacedPod;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tracing::{error, info};

use self::{abandoned::AbandonedSandboxes, counts::WorkingPods};
use super::{
    admission::{AdmitError, RestoredPod},
    decide::{TableAction, TableSnapshot, TaskView, decide},
    node_match::NodeMatch,
    orphan,
};
use crate::{
    pod_sources::{PodSources, pods_by_uid},
    pod_task::{PodContext, PodControl, PodTask, TaskEnd},
};

/// Owns all pod tasks.
pub(crate) struct PodTable {
    context: Arc<PodContext>,
    sources: PodSources,
    relists: watch::Receiver<RelistState>,
    shutdown: watch::Receiver<ShutdownState>,
    node_name: Arc<str>,
    tasks: BTreeMap<PodUid, TaskEntry>,
    working: WorkingPods,
    running: JoinSet<TaskEnd>,
    by_id: BTreeMap<tokio::task::Id, PodUid>,
    on_disk: BTreeSet<PodUid>,
    heartbeat: Heartbeat,
    /// Removed pods with the number of their removal: older lists may still name them.
    removed: BTreeMap<PodUid, Seq>,
    /// Pods whose task panicked.
    panicked: BTreeMap<PodUid, TaskPanic>,
    /// Pods that are on the board although they have no task yet.
    shown: BTreeSet<PodUid>,
    /// Removed or rejected pods that their source still names.
    finished: BTreeSet<PodUid>,
    /// Pods of manifests that have terminated while a manifest defines another pod of their name.
    replaced: BTreeMap<PodName, ReplacedPod>,
    abandoned: AbandonedSandboxes,
    /// Critical pods for which others are being preempted.
    waiting: BTreeMap<PodUid, Arc<Pod>>,
    node_match: NodeMatch,
}

/// A task that panicked; it is restarted after a pause.
struct TaskPanic {
    pauses: Backoff,
    until: Instant,
}

/// First and longest pause before a task that panicked is restarted.
const PAUSE_INITIAL: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// What a new task is for.
enum NewTask {
    /// It keeps the pod running.
    Runs,
    /// It ends the pod within this grace.
    Ends {
        grace: Duration,
        /// Whether a source names the pod.
        is_named: bool,
    },
}

struct TaskEntry {
    view: TaskView,
    control: watch::Sender<PodControl>,
}

impl PodTable {
    /// A table without tasks.
    #[must_use]
    pub(crate) fn new(
        context: Arc<PodContext>,
        sources: PodSources,
        node_name: Arc<str>,
        heartbeat: Heartbeat,
    ) -> Self {
        let relists = context.pleg.relists();
        let shutdown = context.shutdown.clone();
        Self {
            context,
            sources,
            relists,
            shutdown,
            node_name,
            tasks: BTreeMap::new(),
            working: WorkingPods::default(),
            running: JoinSet::new(),
            by_id: BTreeMap::new(),
            on_disk: BTreeSet::new(),
            heartbeat,
            removed: BTreeMap::new(),
            panicked: BTreeMap::new(),
            shown: BTreeSet::new(),
            finished: BTreeSet::new(),
            replaced: BTreeMap::new(),
            abandoned: AbandonedSandboxes::default(),
            waiting: BTreeMap::new(),
            node_match: NodeMatch::default(),
        }
    }

    /// True if the runtime has a pod of the API server that the API server has not listed yet.
    pub(super) fn holds_unlisted(&self, runtime: &[RuntimePod]) -> bool {
        let mut sources = self.sources.iter();
        let api = PodSource::Api;
        let is_unlisted = |found: &RuntimePod| {
            !self.tasks.contains_key(&found.uid) && found.source.as_deref() == Some(api.as_str())
        };
        sources.any(|source| source.borrow().waiting_for.contains(&api))
            && runtime.iter().any(is_unlisted)
    }

    /// Adds a critical pod that waits for resources.
    pub(super) fn add_waiting(&mut self, pod: &Arc<Pod>) {
        self.waiting.insert(pod.uid.clone(), Arc::clone(pod));
    }

    /// The other critical pods that wait for resources.
    pub(super) fn others_waiting(&self, uid: &PodUid) -> impl Iterator<Item = Arc<Pod>> {
        let others = self.waiting.iter().filter(move |(other, _)| *other != uid);
        others.map(|(_, pod)| Arc::clone(pod))
    }

    /// The pods of these tasks.
    pub(super) fn pods_of(&self, uids: &[PodUid]) -> Vec<Arc<Pod>> {
        let tasks = uids.iter().filter_map(|uid| self.tasks.get(uid));
        tasks.filter_map(|task| task.view.running.clone()).collect()
    }

    pub(super) fn context(&self) -> &PodContext {
        &self.context
    }

    /// The pods whose task keeps them running.
    pub(super) fn running_pods(&self) -> impl Iterator<Item = Arc<Pod>> {
        let views = self.tasks.values();
        views.filter_map(|entry| entry.view.running.clone())
    }

    /// Starts no task for this pod as long as its source names it.
    pub(super) fn finished(&mut self, uid: &PodUid) {
        self.finished.insert(uid.clone());
    }

    /// Keeps the tasks in line with the sources, for ever.
    pub(crate) async fn run(mut self) {
        self.show_counts();
        self.on_disk = self.context.host.pods_on_disk().await.into_iter().collect();
        let mut statuses = self.context.board.versions();
        loop {
            // Before the statuses are read below: a change from here on wakes the loop again.
            statuses.borrow_and_update();
            let listed = self.relists.borrow_and_update().seq > Seq::ZERO;
            let (desired, all_ready) = self.desired();
            self.drop_finished(&desired);
            self.readmit_after_shutdown(&desired);
            // Before the first list it is unknown which pods run, and a new task could create one
            // twice.
            if listed {
                self.reconcile(&desired, all_ready).await;
            }
            // Before the first list as well: a pod that waits for the runtime is shown as pending.
            self.show_waiting(&desired).await;
            self.read_node(&desired);
            self.heartbeat.beat();
            let now = Instant::now();
            let rested = self
                .panicked
                .values()
                .map(|panicked| panicked.until)
                .filter(|at| *at > now)
                .min();
            // Cancel safety: watch receivers keep unseen values; the JoinSet keeps ended tasks.
            tokio::select! {
                Some(ended) = self.running.join_next_with_id() => self.ended(ended),
                _ = any_changed(&mut self.sources) => {}
                _ = self.relists.changed() => {}
                Ok(()) = self.shutdown.changed() => {}
                () = self.node_match.ended() => {}
                // A pod that terminates frees resources.
                _ = statuses.changed(), if !self.waiting.is_empty() => {}
                () = sleep(HEARTBEAT) => {}
                () = sleep_until(rested.unwrap_or(now)), if rested.is_some() => {}
            }
        }
    }

    /// Reads the node again if pods wait for that.
    fn read_node(&mut self, desired: &BTreeMap<PodUid, Arc<Pod>>) {
        self.node_match.retain(|uid| desired.contains_key(uid));
        let cluster = &self.context.cluster;
        self.node_match.begin(|| {
            let cluster = Arc::clone(cluster);
            async move { cluster.refresh_node().await }
        });
    }

    /// The desired pods of all sources, and whether all sources have been read.
    fn desired(&mut self) -> (BTreeMap<PodUid, Arc<Pod>>, bool) {
        let mut all_ready = true;
        let sources = self.sources.iter_mut().map(|source| {
            let wants = source.borrow_and_update();
            // Without any source the desired pods are unknown, so no pod is an orphan.
            all_ready &= wants.sources_ready() && !wants.ready.is_empty();
            wants
        });
        (pods_by_uid(sources), all_ready)
    }

    /// Drops finished pods that their source no longer names, and marks rejected pods as finished
    /// that are being deleted.
    fn drop_finished(&mut self, desired: &BTreeMap<PodUid, Arc<Pod>>) {
        let board = &self.context.board;
        self.finished.retain(|uid| {
            let wanted = desired.get(uid);
            match wanted {
                None => board.remove(uid),
                Some(pod) if pod.deletion.is_some() => finish(board, uid),
                Some(_) => {}
            }
            wanted.is_some()
        });
    }

    /// Forgets that pods of manifests were rejected because of a shutdown that was cancelled: nobody
    /// else would replace them.
    fn readmit_after_shutdown(&mut self, desired: &BTreeMap<PodUid, Arc<Pod>>) {
        if *self.shutdown.borrow_and_update() != ShutdownState::Running {
            return;
        }
        let board = &self.context.board;
        self.finished.retain(|uid| {
            let is_static = desired.get(uid).is_some_and(|pod| is_static(pod));
            let is_rejected = board
                .get(uid)
                .is_some_and(|entry| *entry.status.reason == *NODE_SHUTDOWN);
            if is_static && is_rejected {
                board.remove(uid);
                return false;
            }
            true
        });
    }

    /// True while the node shuts down.
    pub(super) fn shuts_down(&self) -> bool {
        *self.shutdown.borrow() == ShutdownState::ShuttingDown
    }

    async fn reconcile(&mut self, desired: &BTreeMap<PodUid, Arc<Pod>>, all_ready: bool) {
        let runtime = self.runtime_pods();
        self.waiting.retain(|uid, pod| {
            match desired.get(uid).filter(|pod| pod.deletion.is_none()) {
                Some(wanted) => {
                    *pod = Arc::clone(wanted);
                    true
                }
                None => false,
            }
        });
        let views = self
            .tasks
            .iter()
            .map(|(uid, entry)| (uid.clone(), entry.view.clone()));
        let now = Instant::now();
        let backing_off = self
            .panicked
            .iter()
            .filter(|(_, panicked)| panicked.until > now);
        let actions = decide(&TableSnapshot {
            backing_off: &backing_off.map(|(uid, _)| uid.clone()).collect(),
            finished: &self.finished,
            desired,
            all_ready,
            tasks: &views.collect(),
            runtime: &runtime,
            on_disk: &self.on_disk,
        });
        // Pods that run already come first: they hold resources beside which new ones are admitted.
        for action in self.known_first(actions, &runtime).await {
            self.apply(action, &runtime).await;
        }
    }

    /// The pods in the runtime, without pods that were removed after the list began.
    fn runtime_pods(&mut self) -> Vec<RuntimePod> {
        // A list that began before a removal ended may still show the pod, and would bring it back.
        let relist = self.relists.borrow();
        self.removed.retain(|_, at| *at >= relist.seq);
        relist
            .pods
            .iter()
            .filter(|pod| !self.removed.contains_key(&pod.uid))
            .cloned()
            .collect()
    }

    async fn apply(&mut self, action: TableAction, runtime: &[RuntimePod]) {
        match action {
            TableAction::Spawn(pod) => {
                // Its admission cannot change before the node is read.
                if self.node_match.waits(&pod.uid) {
                    return;
                }
                let restored = self.restore(&pod).await;
                match self.admit(&pod, &restored, runtime) {
                    // As in the kubelet: a label may have been set just before the pod was bound.
                    Err(AdmitError::Rejected(why))
                        if *why.reason == *NODE_AFFINITY && !self.node_match.is_final(&pod.uid) =>
                    {
                        return;
                    }
                    Ok(()) => {}
                    Err(AdmitError::WaitingForPods) => return self.wait(&pod),
                    Err(AdmitError::NeedsPreemption(preemption)) => {
                        return self.preempt(&pod, &preemption).await;
                    }
                    Err(AdmitError::Rejected(rejection)) => {
                        self.waiting.remove(&pod.uid);
                        return self.reject(&pod, &rejection);
                    }
                }
                self.waiting.remove(&pod.uid);
                info!(pod = %pod.name, uid = %pod.uid, source = pod.source.as_str(), "Pod added");
                self.spawn(pod, NewTask::Runs, restored).await;
            }
            TableAction::Update(pod) => {
                if let Some(entry) = self.tasks.get_mut(&pod.uid) {
                    info!(pod = %pod.name, uid = %pod.uid, "Pod updated");
                    entry.view.running = Some(Arc::clone(&pod));
                    entry.control.send_replace(PodControl::Run(pod));
                }
            }
            TableAction::Remove {
                uid,
                grace,
                generation,
            } => {
                let since = self.context.clock.now();
                if let Some(entry) = self.tasks.get_mut(&uid) {
                    info!(pod = %entry.view.name, %uid, ?grace, "Pod removed from its source, terminating it");
                    // A shorter grace does not move the beginning of the termination.
                    let since = match *entry.control.borrow() {
                        PodControl::Remove { since, .. } => since,
                        PodControl::Run(_) => since,
                    };
                    entry.view.running = None;
                    entry.view.grace = grace;
                    entry.control.send_replace(PodControl::Remove {
                        grace,
                        since,
                        generation,
                    });
                }
            }
            TableAction::SpawnRemoval(pod, grace) => {
                info!(pod = %pod.name, uid = %pod.uid, ?grace, "Pod deleted in the API server, removing it");
                let restored = self.restore(&pod).await;
                let task = NewTask::Ends {
                    grace,
                    is_named: true,
                };
                self.spawn(pod, task, restored).await;
            }
            TableAction::RemoveOrphan(found) => {
                info!(pod = %found.name, uid = %found.uid, "Removing orphaned pod: no source defines it");
                let pod = Arc::new(orphan::pod_of(&found, &self.node_name));
                let grace = pod.spec.termination_grace_period;
                let restored = self.restore(&pod).await;
                self.context.metrics.pod_counts.orphan_found();
                let task = NewTask::Ends {
                    grace,
                    is_named: false,
                };
                self.spawn(pod, task, restored).await;
            }
            TableAction::RemoveLeftover(uid) => {
                info!(%uid, "Removing leftover directory of a pod that no source defines");
                let pod = Arc::new(orphan::leftover(&uid, &self.node_name));
                let restored = self.restore(&pod).await;
                let task = NewTask::Ends {
                    grace: orphan::DEFAULT_GRACE,
                    is_named: false,
                };
                self.spawn(pod, task, restored).await;
            }
        }
    }

    async fn spawn(&mut self, pod: Arc<Pod>, task: NewTask, restored: RestoredPod) {
        let uid = pod.uid.clone();
        let name = pod.name.clone();
        let of_source = is_static(&pod);
        let (control, view, is_static) = match task {
            NewTask::Runs => {
                let view = TaskView {
                    name,
                    running: Some(Arc::clone(&pod)),
                    grace: Duration::ZERO,
                };
                (PodControl::Run(Arc::clone(&pod)), view, Some(of_source))
            }
            NewTask::Ends { grace, is_named } => {
                let control = PodControl::Remove {
                    grace,
                    since: self.context.clock.now(),
                    generation: pod.generation,
                };
                let view = TaskView {
                    name,
                    running: None,
                    grace,
                };
                (control, view, is_named.then_some(of_source))
            }
        };
        let (control, receiver) = watch::channel(control);
        let shown = receiver.clone();
        let intents = self.context.intents.watch(&uid).await;
        // For a pod in the list, only an observation that is newer than the list counts.
        let listed = {
            let relist = self.relists.borrow();
            let is_named = relist.pods.iter().any(|found| found.uid == uid);
            if is_named { relist.seq } else { Seq::ZERO }
        };
        let replaced = self.replaced.remove(&pod.name);
        let mut task = PodTask::new(
            Arc::clone(&self.context),
            pod,
            receiver,
            intents,
            restored.record,
            self.on_disk.contains(&uid),
            listed,
        );
        task.note_replaced(replaced);
        task.note_abandoned_sandbox(self.abandoned.take(&uid, Instant::now()));
        let id = self.running.spawn(task.run()).id();
        self.by_id.insert(id, uid.clone());
        self.working.began(uid.clone(), shown, is_static);
        self.tasks.insert(uid, TaskEntry { view, control });
    }

    fn ended(&mut self, ended: Result<(tokio::task::Id, TaskEnd), tokio::task::JoinError>) {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some(uid) = self.by_id.remove(&id) else {
            return;
        };
        match ended {
            Ok((_, end)) => {
                let attempt = end.abandoned_sandbox;
                self.abandoned.note(&uid, attempt, Instant::now());
                self.on_disk.remove(&uid);
                self.panicked.remove(&uid);
                self.removed.insert(uid.clone(), self.context.pleg.now());
                // The API server keeps a pod that is being deleted until the node reports this.
                let (desired, _) = self.desired();
                let deleted = desired.get(&uid).is_some_and(|pod| pod.deletion.is_some());
                self.note_replaced(&uid, &desired);
                self.note_restarted(&uid, &desired);
                if deleted {
                    finish(&self.context.board, &uid);
                    self.finished(&uid);
                } else {
                    self.context.board.remove(&uid);
                }
            }
            // A new task continues from the pod's record after a pause.
            Err(error) => {
                error!(%uid, %error, "Pod task panicked, restarting it");
                if let Some(entry) = self.tasks.get(&uid) {
                    let subject = Subject::Pod {
                        name: entry.view.name.clone(),
                        uid: Some(uid.clone()),
                        field_path: "".into(),
                    };
                    let message =
                        format!("the agent's task for this pod panicked and is restarted: {error}");
                    let recorder = &self.context.recorder;
                    recorder.record(subject, EventType::Warning, "TaskDied", &message);
                }
                // The next task must not treat a missing record as a pod that was never here.
                self.on_disk.insert(uid.clone());
                let panicked = self
                    .panicked
                    .entry(uid.clone())
                    .or_insert_with(|| TaskPanic {
                        pauses: Backoff::new(PAUSE_INITIAL, PAUSE_MAX),
                        until: Instant::now(),
                    });
                panicked.until = Instant::now() + panicked.pauses.advance();
            }
        }
        // Last: `note_replaced` and the event above read the entry.
        self.tasks.remove(&uid);
        self.working.ended(&uid);
    }
}

/// True if the pod comes from a manifest.
fn is_static(pod: &Pod) -> bool {
    pod.source != PodSource::Api
}

/// Marks the pod on the board as finished: nothing is left of it.
fn finish(board: &PodBoard, uid: &PodUid) {
    if let Some(entry) = board.get(uid)
        && !entry.finished
    {
        let finished = PodEntry {
            finished: true,
            ..(*entry).clone()
        };
        board.set(uid.clone(), finished);
    }
}

/// Resolves when any source has changed; never if there is no source.
async fn any_changed(sources: &mut PodSources) {
    if sources.is_empty() {
        return std::future::pending().await;
    }
    let waits = sources.iter_mut().map(|source| Box::pin(source.changed()));
    let (changed, _, _) = futures_util::future::select_all(waits).await;
    if changed.is_err() {
        // The source ended with the agent.
        std::future::pending::<()>().await;
    }
}

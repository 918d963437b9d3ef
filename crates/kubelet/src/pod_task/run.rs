//! The main loop of a pod's task.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::{
    annotations::CONFIG_HASH,
    pod::{Pod, PodSource},
    status::PodStatus,
};
use rubelet_base::Seq;
use rubelet_node_state::{events::EventType, pod_board::PodEntry, runtime_state::RuntimeState};
use rubelet_pod_plan::{
    History, OperatorIntents, PlanSettings, PodPlan, PodSnapshot, Target, history::ReplacedPod,
    plan, transitions,
};
use tokio::{sync::watch, time::Instant};
use tracing::{debug, info, warn};

use super::{
    LOCAL, PodContext, PodControl, PodTask, TaskEnd, confirm_absence::AbsenceCheck, ephemeral,
    object_changes::ObjectChanges, repeat_backoff::RepeatBackoff, sync_round::SyncRound,
};
use crate::records::PodRecord;

impl PodTask {
    /// A task that continues from the record of an earlier process. `was_here`: an earlier process
    /// worked on the pod. `listed`: the number of the list that contains the pod; older
    /// observations do not show the containers in that list.
    #[must_use]
    pub(crate) fn new(
        context: Arc<PodContext>,
        pod: Arc<Pod>,
        control: watch::Receiver<PodControl>,
        intents: watch::Receiver<Arc<OperatorIntents>>,
        record: Option<PodRecord>,
        was_here: bool,
        listed: Seq,
    ) -> Self {
        // A record made from the cluster's status has no definition.
        let recorded = record
            .as_ref()
            .is_some_and(|record| !record.definition.is_empty());
        let lost_record = was_here && !recorded;
        let absence_check = lost_record.then(AbsenceCheck::default);
        // Before `observe`, which creates a record that states that the pod has no containers. The
        // record that this creates does not.
        let restored = record.as_ref().map_or(Seq::ZERO, |record| {
            context.pleg.restore_ids(&pod.uid, &record.held)
        });
        let observations = context.pleg.observe(&pod.uid, &pod.name);
        let outcomes = context.prober.outcomes(&pod.uid);
        context.host.track(&pod);
        context.objects.track(&pod);
        let object_changes = ObjectChanges::new(context.objects.changes(&pod.uid));
        let definition = definition_of(&pod);
        let mut recreate = false;
        let mut generation = 1;
        let mut content = content_of(&pod);
        let (status, history) = match record {
            Some(record) => {
                // An orphan is removed without its definition, and is still the same pod.
                content = content.or(Some(record.content));
                let edited = !record.definition.is_empty() && record.definition != definition;
                recreate = record.removing || edited && record.status.phase.is_terminal();
                generation = record.generation.max(1) + i64::from(edited);
                (Some(record.status), record.history)
            }
            None => (None, History::default()),
        };
        let from_source = Arc::clone(&pod);
        let node_ips = context.node_ips.clone();
        let releases = context.releases.follow();
        let shutdown = context.shutdown.clone();
        Self {
            context,
            pod,
            control,
            history,
            observed: Arc::default(),
            observations,
            last_step: restored.max(listed),
            absence_check,
            lost_record,
            status,
            recreate,
            definition,
            content: content.unwrap_or_default(),
            removing: false,
            repeat_backoff: RepeatBackoff::default(),
            abandoned_sandbox: None,
            round: SyncRound::first(),
            intents,
            shutdown,
            outcomes,
            from_source,
            ephemeral: Vec::new(),
            generation,
            unfinished: BTreeMap::new(),
            prepared: None,
            volumes_wanted: None,
            object_changes,
            node_ips,
            held_ports: None,
            releases,
            awaited_port: "".into(),
        }
    }

    /// Notes the pod that ended before this one could start.
    pub(crate) fn note_replaced(&mut self, replaced: Option<ReplacedPod>) {
        if replaced.is_some() {
            self.history.replaced = replaced;
        }
    }

    /// Continues from the sandbox that an earlier pod with this UID has abandoned: while the runtime
    /// may still create it, a request with another attempt would make a second one.
    pub(crate) fn note_abandoned_sandbox(&mut self, attempt: Option<u32>) {
        if let Some(attempt) = attempt.filter(|attempt| *attempt > self.history.sandbox_attempt) {
            self.history.sandbox_attempt = attempt;
            self.save_record();
        }
    }

    /// Runs until the pod is removed and nothing of it is left.
    pub(crate) async fn run(mut self) -> TaskEnd {
        if matches!(*self.control.borrow(), PodControl::Run(_)) {
            let now = self.context.clock.now();
            let metrics = &self.context.metrics;
            metrics.pods.task_started(&self.pod, now);
            metrics.starts.pod_accepted(&self.pod);
        }
        loop {
            let uid = self.pod.uid.clone();
            let seen = self
                .context
                .pleg
                .newer_than(&uid, &mut self.observations, self.last_step)
                .await;
            if self.awaits_confirmation(&seen.pod).await {
                continue;
            }
            self.context.pleg.sync_began(&uid, seen.seq);
            let before = std::mem::replace(&mut self.observed, seen.pod);
            self.warn_of_lost_exits(&before);
            self.history.note_observed(&self.observed);
            self.drop_stops_of_exited();
            self.note_host_ports();
            self.note_terminations().await;
            self.resume_after_shutdown().await;
            let target = self.take_control();
            let plan = self.plan(target);
            if std::mem::take(&mut self.lost_record) {
                // On disk before it is published, so that a crash does not change published times.
                self.keep(&plan.status);
                self.context.records.flush().await;
            }
            self.publish(&plan, target);
            if plan.steps.is_empty() {
                self.round.ended(&self.context.metrics.pods, target, false);
                // Before the wait: PLEG inspects a busy pod only once a second. `last_step` stays,
                // so that the next plan may use the same observation.
                self.context.pleg.sync_ended(&uid);
                let now = self.context.clock.now();
                self.idle(plan.wake_at.map(|at| until(at, now))).await;
                continue;
            }
            // The status is published even without the runtime, as that needs no call.
            if !self.runtime_ready() {
                self.context.pleg.sync_ended(&uid);
                self.wait_for_runtime().await;
                continue;
            }
            if let Some(wait) =
                self.repeat_backoff
                    .wait(&plan.steps, &self.observed, Instant::now())
            {
                self.context.pleg.sync_ended(&uid);
                self.idle(Some(wait)).await;
                continue;
            }
            info!(pod = %self.pod.name, uid = %uid, why = %Reasons(&plan), "Syncing pod");
            let finished = plan.finished;
            // Boxed, so that the state of steps is not part of tasks that wait, as most do.
            let done = Box::pin(self.apply_all(plan.steps)).await;
            let is_last = finished && done;
            self.round
                .ended(&self.context.metrics.pods, target, is_last);
            if is_last {
                self.context.pleg.sync_ended(&uid);
                // The table knows whether the API server still names a pod of its own.
                if self.pod.source != PodSource::Api {
                    self.context.board.remove(&uid);
                }
                self.context.pleg.forget(&uid);
                self.context.prober.forget(&uid);
                self.context.objects.forget(&uid);
                self.context.intents.remove(&uid).await;
                let abandoned_sandbox = self.abandoned_sandbox;
                return TaskEnd {
                    uid,
                    abandoned_sandbox,
                };
            }
            // The next plan needs an observation that began after these steps.
            self.last_step = self.context.pleg.sync_ended(&uid);
        }
    }

    /// Holds the pod's host ports while a sandbox exists, whichever process created it.
    fn note_host_ports(&mut self) {
        if self.observed.sandboxes.is_empty() {
            self.held_ports = None;
        } else if self.held_ports.is_none() && self.observed.ready_sandbox().is_some() {
            self.held_ports = self.context.host_ports.adopt(&self.pod);
        }
    }

    /// Reads the task's control and applies edits.
    fn take_control(&mut self) -> Target {
        let control = self.control.borrow_and_update().clone();
        match control {
            PodControl::Remove { grace, .. } => Target::Remove {
                grace: self.shortest_grace(grace),
            },
            PodControl::Run(pod) => {
                if !Arc::ptr_eq(&pod, &self.from_source) {
                    let ended = self.status.as_ref().is_some_and(|s| s.phase.is_terminal());
                    let definition = definition_of(&pod);
                    let edited = definition != self.definition;
                    self.recreate |= ended && edited;
                    self.generation += i64::from(edited);
                    self.round.edited();
                    self.definition = definition;
                    self.content = content_of(&pod).unwrap_or_default();
                    self.from_source = Arc::clone(&pod);
                    self.ephemeral = Vec::new();
                    self.pod = pod;
                    // The steps of an edited pod are applied at once.
                    self.repeat_backoff = RepeatBackoff::default();
                    self.context.host.track(&self.pod);
                    self.context.objects.track(&self.pod);
                    self.object_changes
                        .follow(self.context.objects.changes(&self.pod.uid));
                    let containers: Vec<_> = self.pod.spec.all_containers().collect();
                    self.history.retain(&containers);
                    self.history.sandbox = None;
                }
                self.add_ephemeral();
                if self.recreate {
                    let grace = self.pod.spec.termination_grace_period;
                    return Target::Remove { grace };
                }
                Target::Run
            }
        }
    }

    /// `status.startTime`.
    pub(super) fn started_at(&self) -> Option<Timestamp> {
        self.status.as_ref().map(|status| status.start_time)
    }

    /// The grace period of the pod's termination, which an operator may have shortened.
    pub(super) fn shortest_grace(&self, grace: Duration) -> Duration {
        self.intents
            .borrow()
            .grace
            .map_or(grace, |asked| asked.min(grace))
    }

    /// Adds the requested ephemeral containers to the pod.
    fn add_ephemeral(&mut self) {
        let wanted = self.intents.borrow().ephemeral.clone();
        if wanted == self.ephemeral {
            return;
        }
        match ephemeral::complete(&self.from_source, &wanted) {
            Ok(pod) => self.pod = Arc::new(pod),
            Err(error) => {
                warn!(pod = %self.pod.name, %error, "Ignoring ephemeral containers that do not fit the edited pod");
                self.pod = Arc::clone(&self.from_source);
            }
        }
        self.ephemeral = wanted;
    }

    /// The generation of the pod, which the API server counts for its own pods, deletions
    /// included, and this task for others.
    fn generation_of_pod(&self) -> i64 {
        if self.pod.source != PodSource::Api {
            return self.generation;
        }
        match *self.control.borrow() {
            PodControl::Remove { generation, .. } => self.pod.generation.max(generation),
            PodControl::Run(_) => self.pod.generation,
        }
    }

    fn plan(&mut self, target: Target) -> PodPlan {
        let outcomes = Arc::clone(&self.outcomes.borrow_and_update());
        let intents = Arc::clone(&self.intents.borrow_and_update());
        let with_ips;
        let mut settings = &self.context.settings;
        if self.pod.spec.host_network {
            with_ips = PlanSettings {
                node_ips: self.node_ips.texts(),
                ..settings.clone()
            };
            settings = &with_ips;
        }
        let snapshot = PodSnapshot {
            pod: &self.pod,
            observed: &self.observed,
            history: &self.history,
            previous: self.status.as_ref(),
            target,
            settings,
            probes: &outcomes,
            intents: &intents,
            generation: self.generation_of_pod(),
        };
        plan(&snapshot, self.context.clock.now())
    }

    fn publish(&mut self, plan: &PodPlan, target: Target) {
        let context = &self.context;
        for event in transitions::events(&self.pod, self.status.as_ref(), &plan.status) {
            context.recorder.pod(
                &self.pod,
                event.container.as_deref(),
                if event.warning {
                    EventType::Warning
                } else {
                    EventType::Normal
                },
                event.reason,
                &event.message,
            );
        }
        let deletion = match (&*self.control.borrow(), target) {
            (PodControl::Remove { grace, since, .. }, _) => Some((*since, *grace)),
            _ => None,
        };
        let (before, now) = (self.status.as_ref(), context.clock.now());
        let metrics = &context.metrics;
        metrics.pods.status(&self.pod, before, &plan.status, now);
        metrics.starts.status(before, &plan.status);
        let entry = PodEntry {
            pod: Arc::clone(&self.pod),
            status: plan.status.clone(),
            deletion,
            why: plan.why.clone(),
            history: Arc::new(self.history.clone()),
            wake_at: plan.wake_at,
            finished: false,
        };
        let ip = match plan.status.pod_ips.first() {
            Some(ip) => &**ip,
            // In the host's network namespace the pod is reachable at the loopback address.
            None if self.pod.spec.host_network => LOCAL,
            None => "",
        };
        context.prober.set(&self.pod, ip, plan.probes.clone());
        // A pod that is known by its directory only has no namespace, and is not published.
        if !self.pod.name.namespace.is_empty() {
            context.board.set(self.pod.uid.clone(), entry);
        }
        self.status = Some(plan.status.clone());
        self.removing = matches!(target, Target::Remove { .. });
        self.save_record();
        debug!(pod = %self.pod.name, why = %Reasons(plan), steps = plan.steps.len(), "Planned");
    }

    pub(super) fn save_record(&self) {
        if let Some(status) = &self.status {
            self.keep(status);
        }
    }

    fn keep(&self, status: &PodStatus) {
        let record = PodRecord {
            namespace: (&*self.pod.name.namespace).into(),
            name: (&*self.pod.name.name).into(),
            status: status.clone(),
            history: self.history.clone(),
            definition: self.definition.clone(),
            content: self.content.clone(),
            generation: self.generation,
            removing: self.removing,
            held: self.context.pleg.runtime_ids(&self.pod.uid),
        };
        self.context.records.save(&self.pod.uid, record);
    }

    fn runtime_ready(&self) -> bool {
        self.context.runtime_state.borrow().is_ready()
    }

    /// Waits for a change of any input of the plan.
    async fn idle(&mut self, wait: Option<Duration>) {
        let waits = self.awaited_objects();
        let source = Arc::clone(&self.context.objects);
        let mut update = None;
        // Cancel safety: watch receivers keep unseen values; the timer is computed again; objects
        // are read again.
        tokio::select! {
            found = self.object_changes.next(&*source, &self.pod, waits) => update = Some(found),
            changed = self.control.changed() => {
                if changed.is_err() {
                    // The agent stops; its task set ends this task.
                    std::future::pending::<()>().await;
                }
            }
            _ = self.observations.changed() => {}
            Ok(()) = self.outcomes.changed() => {}
            Ok(()) = self.intents.changed() => {}
            Ok(()) = self.shutdown.changed(), if self.pod.source != PodSource::Api => {}
            () = self.node_ips.changed(), if self.pod.spec.host_network => {}
            // A pod without a sandbox may wait for a resource that another pod has released: a host
            // port, an address, user IDs.
            Ok(()) = self.releases.changed(), if self.history.sandbox.is_some() => {
                self.history.note_release();
            }
            () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
        }
        if let Some(update) = update {
            Box::pin(self.apply_object_update(update)).await;
        }
        self.round.woken();
    }

    async fn wait_for_runtime(&mut self) {
        let mut state = self.context.runtime_state.clone();
        tokio::select! {
            () = ready(&mut state) => {}
            changed = self.control.changed() => {
                if changed.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
        self.round.woken();
    }
}

async fn ready(state: &mut watch::Receiver<RuntimeState>) {
    if state.wait_for(RuntimeState::is_ready).await.is_err() {
        // The agent stops.
        std::future::pending::<()>().await;
    }
}

/// Time until `at`, and a little more, so that `at` is in the past for the next plan.
fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default() + Duration::from_millis(1)
}

/// `kubernetes.io/config.hash` of a pod of a manifest.
fn content_of(pod: &Pod) -> Option<Box<str>> {
    pod.annotations.get(CONFIG_HASH).cloned()
}

/// The definitions of the sandbox and the containers; if they change, some must be recreated.
fn definition_of(pod: &Pod) -> Box<str> {
    let mut text = String::new();
    if let Some(sandbox) = &pod.sandbox_definition {
        text.push_str(&sandbox.0);
    }
    for container in pod.spec.all_containers() {
        let definition = container.definition.as_ref().map_or("", |hash| &hash.0);
        text.push_str(&format!("+{}={definition}", container.name));
    }
    text.into()
}

struct Reasons<'a>(&'a PodPlan);

impl std::fmt::Display for Reasons<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, why) in self.0.why.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{why}")?;
        }
        Ok(())
    }
}

//! The task that inspects pods and relists.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rubelet_base::{Backoff, ErrorChain, PodUid, Seq};
use rubelet_cri::{CriError, RuntimeService, v1};
use rubelet_pod_plan::ObservedPod;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tracing::{debug, warn};

use crate::{
    heartbeat::{HEARTBEAT, Heartbeat},
    throttle::Throttle,
};

use super::{
    cell::{Observation, PodCell},
    handle::{PlegHandle, RelistState},
    inspect::{InspectionPlan, KnownContainer, inspect},
    relist::{self, Difference, ListedPod},
};

/// At most so many inspections at the same time, beside those that hang.
const INSPECTIONS_AT_ONCE: usize = 16;
/// First wait after a failed inspection or relist; doubles up to [`RETRY_MAX`].
const RETRY_INITIAL: Duration = Duration::from_millis(100);
/// Longest wait after a failed inspection or relist.
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Settings of PLEG.
#[derive(Debug, Clone, Copy)]
pub struct PlegSettings {
    /// Time from the end of a relist to the start of the next one.
    pub relist_period: Duration,
}

/// The body of PLEG. Runs until it is dropped.
pub struct PlegTask {
    runtime: Arc<dyn RuntimeService>,
    settings: PlegSettings,
    handle: PlegHandle,
    inspections: JoinSet<Inspected>,
    throttle: Arc<Throttle>,
    /// Inspections for later: of what failed, or may still change; soonest first.
    retries: BTreeMap<(Instant, PodUid), ()>,
    heartbeat: Heartbeat,
}

struct Inspected {
    cell: Arc<PodCell>,
    began: Seq,
    result: Result<ObservedPod, CriError>,
}

type Listed = Result<(Vec<v1::PodSandbox>, Vec<v1::Container>), CriError>;

impl PlegTask {
    /// Makes the task and the handle that the rest of the agent holds.
    #[must_use]
    pub fn new(
        runtime: Arc<dyn RuntimeService>,
        settings: PlegSettings,
        heartbeat: Heartbeat,
    ) -> (Self, PlegHandle) {
        let handle = PlegHandle::new();
        let task = Self {
            runtime,
            settings,
            handle: handle.clone(),
            inspections: JoinSet::new(),
            throttle: Arc::new(Throttle::new(INSPECTIONS_AT_ONCE)),
            retries: BTreeMap::new(),
            heartbeat,
        };
        (task, handle)
    }

    /// Inspects and relists for ever.
    pub async fn run(mut self) {
        let mut relists: JoinSet<(Seq, Instant, Listed)> = JoinSet::new();
        let mut backoff = Backoff::new(RETRY_INITIAL, RETRY_MAX);
        let mut next_relist = Instant::now();
        let shared = Arc::clone(&self.handle.shared);
        loop {
            self.heartbeat.beat();
            let retry = self.retries.keys().next().map(|(at, _)| *at);
            // Cancel safety: Notify keeps its permit, JoinSets keep finished tasks, timers are
            // computed anew in each round.
            tokio::select! {
                Some(done) = self.inspections.join_next() => match done {
                    Ok(inspected) => self.finish(inspected),
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                Some(done) = relists.join_next() => match done {
                    Ok((began, at, Ok((sandboxes, containers)))) => {
                        backoff.reset();
                        self.reconcile(began, at, &sandboxes, &containers);
                        next_relist = Instant::now() + self.settings.relist_period;
                    }
                    Ok((_, _, Err(error))) => {
                        let wait = backoff.advance();
                        if !error.is_unavailable() {
                            warn!(error = %ErrorChain(&error), "Relist failed");
                        }
                        next_relist = Instant::now() + wait;
                    }
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                () = shared.wake.notified() => {}
                () = shared.relist_now.notified() => {
                    backoff.reset();
                    next_relist = Instant::now();
                }
                () = sleep_until(next_relist), if relists.is_empty() => {
                    let (runtime, began) = (Arc::clone(&self.runtime), self.handle.now());
                    let at = Instant::now();
                    relists.spawn(async move { (began, at, list(&*runtime).await) });
                }
                () = sleep_until(retry.unwrap_or(next_relist)), if retry.is_some() => {
                    self.requeue_retries();
                }
                () = sleep(HEARTBEAT) => {}
            }
            self.start_inspections();
        }
    }

    fn requeue_retries(&mut self) {
        let now = Instant::now();
        while let Some(entry) = self.retries.first_entry()
            && entry.key().0 <= now
        {
            let ((_, uid), ()) = entry.remove_entry();
            self.handle.shared.enqueue(&uid);
        }
    }

    fn start_inspections(&mut self) {
        for uid in self.handle.shared.take_queue() {
            let cell = self.handle.shared.lock_cells().get(&uid).cloned();
            if let Some(cell) = cell {
                self.start_inspection(cell);
            }
        }
    }

    fn start_inspection(&mut self, cell: Arc<PodCell>) {
        if std::mem::replace(&mut cell.marks().inflight, true) {
            return;
        }
        let (runtime, handle) = (Arc::clone(&self.runtime), self.handle.clone());
        let throttle = Arc::clone(&self.throttle);
        self.inspections.spawn(async move {
            let look = async {
                let (began, plan) = begin(&handle, &cell);
                (began, inspect(&runtime, &cell.uid, plan).await)
            };
            let (began, result) = throttle.run(look).await;
            Inspected {
                cell,
                began,
                result,
            }
        });
    }

    fn finish(&mut self, inspected: Inspected) {
        let Inspected {
            cell,
            began,
            result,
        } = inspected;
        match result {
            Ok(pod) => {
                let again = {
                    let mut marks = cell.marks();
                    marks.inflight = false;
                    marks.failures = 0;
                    if let Some(at) = marks.believed_at(&pod, Instant::now()) {
                        drop(marks);
                        self.retries.insert((at, cell.uid.clone()), ());
                        return;
                    }
                    if let Some(at) = marks.late_reasons.note(&pod, Instant::now()) {
                        self.retries.insert((at, cell.uid.clone()), ());
                    }
                    let again = marks.is_dirty(began);
                    if !again {
                        // What was learned before this inspection began is in it now.
                        marks.needs_list = false;
                        marks.learned_sandboxes.clear();
                        marks.learned_containers.clear();
                        marks.removed_containers.clear();
                        marks.changed_sandboxes.clear();
                    }
                    again
                };
                let observation = Observation {
                    seq: began,
                    pod: Arc::new(pod),
                    error: None,
                };
                cell.observation.send_replace(observation);
                if again {
                    self.handle.shared.enqueue(&cell.uid);
                }
            }
            Err(error) => self.retry_later(&cell, &error),
        }
    }

    fn retry_later(&mut self, cell: &PodCell, error: &CriError) {
        let failures = {
            let mut marks = cell.marks();
            marks.inflight = false;
            // A failed call may have missed something that only a list can find.
            marks.needs_list = true;
            marks.failures = marks.failures.saturating_add(1);
            marks.failures
        };
        let text: Arc<str> = ErrorChain(error).to_string().into();
        if failures == 1 && !error.is_unavailable() {
            warn!(pod = %cell.uid, error = %text, "Inspection of a pod failed");
        }
        cell.observation
            .send_modify(|observation| observation.error = Some(text));
        let wait = RETRY_INITIAL
            .saturating_mul(1 << failures.min(6))
            .min(RETRY_MAX);
        self.retries
            .insert((Instant::now() + wait, cell.uid.clone()), ());
    }

    /// Compares a complete list with the records: marks what differs, and makes records for pods
    /// that are new.
    fn reconcile(
        &self,
        began: Seq,
        at: Instant,
        sandboxes: &[v1::PodSandbox],
        containers: &[v1::Container],
    ) {
        let listed = relist::group(sandboxes, containers);
        let pods = relist::runtime_pods(&listed);
        for pod in &pods {
            self.handle.listed_cell(&pod.uid);
        }
        let cells: Vec<_> = self.handle.shared.lock_cells().values().cloned().collect();
        let nothing = ListedPod::default();
        for cell in cells {
            let found = listed.get(cell.uid.as_str()).unwrap_or(&nothing);
            let difference = relist::compare(found, &cell.observation.borrow(), began);
            match difference {
                Difference::None => {}
                Difference::State => self.handle.mark(&cell.uid),
                Difference::Identifiers => self.handle.mark_unknown(&cell.uid),
            }
            if difference != Difference::None {
                debug!(pod = %cell.uid, ?difference, "Relist found a difference");
            }
        }
        self.handle.shared.relist.send_modify(|state| {
            let pods = if *state.pods == pods {
                Arc::clone(&state.pods)
            } else {
                Arc::new(pods)
            };
            *state = RelistState {
                seq: began,
                at: Some(at),
                pods,
            };
        });
    }
}

/// Takes the number of an inspection, and what it has to look at.
fn begin(handle: &PlegHandle, cell: &PodCell) -> (Seq, InspectionPlan) {
    let marks = cell.marks();
    // Taken under the lock: a mark that this plan does not hold has a larger number.
    let began = handle.now();
    let seen = cell.observation.borrow();
    let mut plan = InspectionPlan {
        list: marks.needs_list,
        ..InspectionPlan::default()
    };
    for sandbox in &seen.pod.sandboxes {
        let fixed = !sandbox.ready && !marks.changed_sandboxes.contains(&sandbox.id);
        plan.sandboxes
            .insert(sandbox.id.clone(), fixed.then(|| sandbox.clone()));
    }
    for found in &seen.pod.containers {
        if marks.removed_containers.contains(&found.id) {
            continue;
        }
        let is_final = found.phase.exit().is_some() && !marks.late_reasons.doubts(&found.id);
        let record = is_final.then(|| found.clone());
        let known = KnownContainer {
            sandbox: found.sandbox.clone(),
            record,
        };
        plan.containers.insert(found.id.clone(), known);
    }
    for id in &marks.learned_sandboxes {
        plan.sandboxes.entry(id.clone()).or_default();
    }
    for (id, sandbox) in &marks.learned_containers {
        let known = || KnownContainer {
            sandbox: sandbox.clone(),
            record: None,
        };
        plan.containers.entry(id.clone()).or_insert_with(known);
    }
    (began, plan)
}

/// Sandboxes first: a container's sandbox is then never missing from an older list.
async fn list(runtime: &dyn RuntimeService) -> Listed {
    let sandboxes = runtime
        .list_pod_sandbox(v1::ListPodSandboxRequest::default())
        .await?
        .items;
    let containers = runtime
        .list_containers(v1::ListContainersRequest::default())
        .await?;
    Ok((sandboxes, containers.containers))
}

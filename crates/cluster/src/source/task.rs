//! Follows the pods of this node at the API server.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use rubelet_api::pod::{Pod, PodSource};
use rubelet_base::PodName;
use rubelet_kube::{Change, Client, ObjectName, WatchReopener, WatchTarget, Watcher};
use rubelet_node_state::{
    clock::Clock,
    events::{EventType, Recorder},
    intents::IntentBoard,
    metrics::NodeMetrics,
};
use rubelet_sources::desired::Desired;
use rubelet_yaml::SkippedField;
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tracing::{info, warn};

use super::{
    ApiPod, ApiPods,
    admission_gate::AdmissionGate,
    read::{InvalidObject, parse, read_header},
    readiness_gates::{self, ReadinessGates},
    start_progress::observed_start,
    state::{ApiState, Json, SourceUpdate},
    stored::StoredPods,
};

/// Time to wait for the API server before pods start from their last known definitions.
const PATIENCE: Duration = Duration::from_secs(10);

/// Annotation, in what is shown of a pod, that the API server did not confirm it since the agent
/// started.
pub const UNCONFIRMED: &str = "rubelet.dev/unconfirmed";

/// Dependencies of the source.
pub struct SourceParts {
    /// The API server.
    pub client: Client,
    /// Name of this node.
    pub node_name: Arc<str>,
    /// The directory that keeps pods for a start without the API server; it contains all of their
    /// definitions, also secrets in them.
    pub directory: PathBuf,
    /// Opens the watch of the pods again.
    pub reopener: WatchReopener,
    /// The API server's copy of each pod.
    pub api: Arc<ApiPods>,
    /// Decides which pods may start.
    pub gate: Arc<AdmissionGate>,
    /// Passes conditions that others set to the pod tasks.
    pub intents: IntentBoard,
    /// Events.
    pub recorder: Recorder,
    /// Why the API server can't be reached, for display; `None` while it can.
    pub problem: watch::Sender<Option<String>>,
    /// The pods to run.
    pub desired: watch::Sender<Arc<Desired>>,
    /// Wall time.
    pub clock: Clock,
    /// Metrics of the node.
    pub metrics: Arc<NodeMetrics>,
}

/// The desired pods before the first list: none, and not complete.
#[must_use]
pub fn unknown() -> Arc<Desired> {
    Arc::new(Desired {
        waiting_for: BTreeSet::from([PodSource::Api]),
        ..Desired::default()
    })
}

/// Follows the API server forever.
pub async fn run(parts: SourceParts) {
    let target = WatchTarget {
        path: "/api/v1/pods".to_owned(),
        field_selector: Some(format!("spec.nodeName={}", parts.node_name)),
        label_selector: None,
    };
    let watcher = parts.client.watch(target).reopened_by(&parts.reopener);
    let stored = StoredPods::new(parts.directory.clone());
    let writer = stored.clone().run();
    let source = Source {
        parts,
        stored,
        state: ApiState::default(),
        gates: ReadinessGates::default(),
        confirmed: false,
    };
    tokio::join!(writer, source.run(watcher));
}

struct Source {
    parts: SourceParts,
    stored: StoredPods,
    state: ApiState,
    gates: ReadinessGates,
    /// The API server has listed the pods since the agent started.
    confirmed: bool,
}

impl Source {
    async fn run(mut self, mut watcher: Watcher<Json>) {
        let mut problem = watcher.problem();
        let patience = Instant::now() + PATIENCE;
        let mut waits = true;
        loop {
            // Cancel safety: the watcher keeps its place, the watch channel what was not seen.
            tokio::select! {
                change = watcher.next() => self.apply(change).await,
                Ok(()) = problem.changed() => {
                    let now = problem.borrow_and_update().clone();
                    self.parts.problem.send_replace(now);
                }
                () = sleep_until(patience), if waits => {
                    waits = false;
                    let why = problem.borrow().clone();
                    if !self.confirmed {
                        self.start_unconfirmed(why.as_deref()).await;
                    }
                }
            }
        }
    }

    async fn apply(&mut self, change: Change<Json>) {
        let node_name = Arc::clone(&self.parts.node_name);
        let updates = self.state.apply(change, &node_name);
        let first = !self.confirmed
            && updates
                .iter()
                .any(|update| matches!(update, SourceUpdate::ListComplete));
        if first {
            self.confirmed = true;
            self.forget_gone().await;
        }
        let mut news = Vec::new();
        for update in &updates {
            match update {
                SourceUpdate::Observed(pod) => news.extend(self.gates.news(pod)),
                SourceUpdate::Removed(uid) => self.gates.forget(uid),
                _ => {}
            }
        }
        for (uid, conditions) in news {
            readiness_gates::store_conditions(&self.parts.intents, &uid, conditions).await;
        }
        // All at once: who saw half of a list would take the other half for gone.
        let (parts, stored) = (&self.parts, &self.stored);
        parts.desired.send_if_modified(|desired| {
            let mut changed = false;
            // The list replaces the last known definitions.
            if first {
                Arc::make_mut(desired).pods.clear();
                changed = true;
            }
            for update in updates {
                changed |= apply_update(parts, stored, update, desired);
            }
            changed
        });
    }

    /// Starts the last known pods. Others that run stay: they may still be desired.
    async fn start_unconfirmed(&self, why: Option<&str>) {
        let pods = self.stored.load().await;
        let pods: Vec<Arc<Pod>> = pods
            .iter()
            .filter_map(|json| self.unconfirmed(json))
            .collect();
        if pods.is_empty() {
            return;
        }
        let why = why.unwrap_or("it does not answer");
        warn!(
            pods = pods.len(),
            why, "The API server is unreachable; starting pods from their last known definitions"
        );
        for pod in &pods {
            let message = format!(
                "the API server has not confirmed this pod; it runs from its last known definition: {why}"
            );
            let recorder = &self.parts.recorder;
            recorder.pod(pod, None, EventType::Warning, "Unconfirmed", &message);
        }
        let pods = pods.into_iter().map(|pod| (pod.name.clone(), pod));
        self.parts.desired.send_modify(|desired| {
            Arc::make_mut(desired).pods = pods.collect();
        });
    }

    fn unconfirmed(&self, json: &Json) -> Option<Arc<Pod>> {
        let seen = read_header(json).ok()?;
        let mut shown: Value = serde_json::from_str(json.get()).ok()?;
        let bound = shown["spec"]["nodeName"].as_str().unwrap_or_default();
        if bound != &*self.parts.node_name {
            warn!(
                pod = %seen.api.name,
                node = bound,
                "Ignoring a stored pod of another node"
            );
            return None;
        }
        let parsed = parse(json, &seen.api, &self.parts.node_name, None);
        self.parts
            .gate
            .set_rejection(&seen.api.uid, parsed.rejection);
        let mut pod = Pod::clone(&parsed.pod);
        shown = serde_json::from_str(&pod.json).ok()?;
        let annotations = &mut shown["metadata"]["annotations"];
        if !annotations.is_object() {
            *annotations = Value::Object(serde_json::Map::new());
        }
        annotations[UNCONFIRMED] = "true".into();
        pod.json = shown.to_string().into();
        Some(Arc::new(pod))
    }

    /// The API server has listed the pods: stored copies of others are obsolete.
    async fn forget_gone(&self) {
        if !self.parts.desired.borrow().pods.is_empty() {
            info!("The API server is reachable again");
        }
        for uid in self.stored.uids().await {
            if !self.state.knows(&uid) {
                self.stored.put(uid, None);
            }
        }
    }
}

/// The name under which fields of pods that can't be decoded are recorded.
const READER: &str = "pods";

fn object(pod: &PodName) -> ObjectName {
    ObjectName {
        resource: "pods".into(),
        namespace: pod.namespace.as_ref().into(),
        name: pod.name.as_ref().into(),
    }
}

/// Notes for the metrics how far a pod has started. One that was known and is not starting is not looked at.
fn note_start(parts: &SourceParts, pod: &ApiPod) {
    let latency = &parts.metrics.start_latency;
    if parts.api.get(&pod.uid).is_some() && !latency.is_starting(&pod.uid) {
        return;
    }
    if let Some(observed) = observed_start(pod) {
        latency.observed(&pod.uid, &observed, parts.clock.now());
    }
}

/// Applies one update; true if it changes the desired pods.
fn apply_update(
    parts: &SourceParts,
    stored: &StoredPods,
    update: SourceUpdate,
    desired: &mut Arc<Desired>,
) -> bool {
    match update {
        SourceUpdate::Observed(pod) => {
            note_start(parts, &pod);
            parts.api.set(pod.uid.clone(), pod);
        }
        SourceUpdate::Removed(uid) => {
            parts.gate.forget(&uid);
            Arc::make_mut(desired).pods.retain(|_, pod| pod.uid != uid);
            if let Some(known) = parts.api.get(&uid) {
                let object = object(&known.name);
                parts.client.unreadable().note(READER, &object, Vec::new());
            }
            parts.api.remove(&uid);
            parts.metrics.start_latency.forget(&uid);
            stored.put(uid, None);
            return true;
        }
        SourceUpdate::Desired(pod, rejection) => {
            parts.gate.set_rejection(&pod.uid, rejection);
            let desired = Arc::make_mut(desired);
            desired.pods.insert(pod.name.clone(), pod);
            return true;
        }
        SourceUpdate::Persist(uid, json) => stored.put(uid, Some(json)),
        SourceUpdate::UnknownFields(pod, paths) => {
            let message = format!(
                "this node does not know these fields and runs the pod without them: {}",
                paths.join(", ")
            );
            warn!(pod = %pod.name, "{message}");
            let (kind, reason) = (EventType::Warning, "UnknownFields");
            parts.recorder.pod(&pod, None, kind, reason, &message);
        }
        SourceUpdate::ResizeInfeasible(pod, message) => {
            let (kind, reason) = (EventType::Warning, "ResizeInfeasible");
            parts.recorder.pod(&pod, None, kind, reason, &message);
        }
        SourceUpdate::UnreadableFields(name, fields) => {
            parts
                .client
                .unreadable()
                .note(READER, &object(&name), fields);
        }
        SourceUpdate::Invalid(InvalidObject { name, problem }) => match name {
            Some(name) => {
                let field = String::new();
                let fields = vec![SkippedField { field, problem }];
                let unread = parts.client.unreadable();
                unread.note_temporarily(READER, &object(&name), fields);
            }
            None => warn!(problem, "Ignoring an invalid pod from the API server"),
        },
        SourceUpdate::ListComplete => {
            let desired = Arc::make_mut(desired);
            desired.waiting_for.clear();
            return desired.ready.insert(PodSource::Api);
        }
    }
    false
}

//! Follows the pods of this node at the API server.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use rubelet_api::pod::{Pod, PodSource};
use rubelet_base::PodName;
use rubelet_kube::{Change, Client, ObjectName, WatchTarget, Watcher};
use rubelet_kubelet::{
    events::{EventType, Recorder},
    intents::IntentBoard,
};
use rubelet_sources::desired::Desired;
use rubelet_yaml::LeftOut;
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};
use tracing::{info, warn};

use super::{
    ApiPods,
    gate::Gate,
    gates::{self, Gates},
    read::{Nonsense, glance, parse},
    state::{ApiState, Json, Told},
    stored::StoredPods,
};

/// So long the API server is waited for before the pods that were known last start without it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Annotation, in what is shown of a pod, that the API server did not confirm it since the agent
/// started.
pub const UNCONFIRMED: &str = "rubelet.dev/unconfirmed";

/// What the source is made from.
pub struct SourceParts {
    /// The API server.
    pub client: Client,
    /// Name of this node.
    pub node_name: Arc<str>,
    /// Where pods are kept for a start without API server; it holds what they hold, also secrets in
    /// their definitions.
    pub folder: PathBuf,
    /// What the API server says of each pod.
    pub api: Arc<ApiPods>,
    /// Decides which pods may start.
    pub gate: Arc<Gate>,
    /// Where conditions of others are told to the tasks of pods.
    pub intents: IntentBoard,
    /// Events.
    pub recorder: Recorder,
    /// Why the API server can't be reached, for those who show it; `None` while it can.
    pub problem: watch::Sender<Option<String>>,
    /// What is to run.
    pub desired: watch::Sender<Arc<Desired>>,
}

/// What is wanted before the API server was asked.
#[must_use]
pub fn unknown() -> Arc<Desired> {
    Arc::new(Desired {
        waiting_for: BTreeSet::from([PodSource::Api]),
        ..Desired::default()
    })
}

/// Follows the API server for ever.
pub async fn run(parts: SourceParts) {
    let watcher = parts.client.watch(WatchTarget {
        path: "/api/v1/pods".to_owned(),
        field_selector: Some(format!("spec.nodeName={}", parts.node_name)),
        label_selector: None,
    });
    let stored = StoredPods::new(parts.folder.clone());
    let writer = stored.clone().run();
    let source = Source {
        parts,
        stored,
        state: ApiState::default(),
        gates: Gates::default(),
        confirmed: false,
    };
    tokio::join!(writer, source.run(watcher));
}

struct Source {
    parts: SourceParts,
    stored: StoredPods,
    state: ApiState,
    gates: Gates,
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
        let told = self.state.apply(change, &node_name);
        let first = !self.confirmed && told.iter().any(|told| matches!(told, Told::Complete));
        if first {
            self.confirmed = true;
            self.forget_gone().await;
        }
        let mut news = Vec::new();
        for told in &told {
            match told {
                Told::Has(pod) => news.extend(self.gates.news(pod)),
                Told::Lost(uid) => self.gates.forget(uid),
                _ => {}
            }
        }
        for (uid, conditions) in news {
            gates::tell(&self.parts.intents, &uid, conditions).await;
        }
        // All at once: who saw half of a list would take the other half for gone.
        let (parts, stored) = (&self.parts, &self.stored);
        parts.desired.send_if_modified(|desired| {
            let mut changed = false;
            if first {
                Arc::make_mut(desired).pods.clear();
                changed = true;
            }
            for told in told {
                changed |= tell(parts, stored, told, desired);
            }
            changed
        });
    }

    /// Starts the pods as they were known last. Others that run stay: nobody says that they should
    /// not.
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
            why, "The API server can't be reached; pods start as they were known last"
        );
        for pod in &pods {
            let message = format!(
                "the API server did not confirm this pod, which runs as it was known last: {why}"
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
        let seen = glance(json).ok()?;
        let mut shown: Value = serde_json::from_str(json.get()).ok()?;
        let bound = shown["spec"]["nodeName"].as_str().unwrap_or_default();
        if bound != &*self.parts.node_name {
            warn!(
                pod = %seen.api.name,
                node = bound,
                "Does not start a pod that belongs to a node of another name"
            );
            return None;
        }
        let parsed = parse(json, &seen.api, &self.parts.node_name, None);
        self.parts.gate.judge(&seen.api.uid, parsed.rejection);
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

    /// The API server tells now what is to run: what is kept of other pods has gone meanwhile.
    async fn forget_gone(&self) {
        if !self.parts.desired.borrow().pods.is_empty() {
            info!("The API server can be reached again");
        }
        for uid in self.stored.uids().await {
            if !self.state.knows(&uid) {
                self.stored.put(uid, None);
            }
        }
    }
}

/// Who notes what can't be read of pods.
const READER: &str = "pods";

fn object(pod: &PodName) -> ObjectName {
    ObjectName {
        resource: "pods".into(),
        namespace: pod.namespace.as_ref().into(),
        name: pod.name.as_ref().into(),
    }
}

/// Tells one thing; true if it changes what is to run.
fn tell(parts: &SourceParts, stored: &StoredPods, told: Told, desired: &mut Arc<Desired>) -> bool {
    match told {
        Told::Has(pod) => parts.api.set(pod.uid.clone(), pod),
        Told::Lost(uid) => {
            parts.gate.forget(&uid);
            Arc::make_mut(desired).pods.retain(|_, pod| pod.uid != uid);
            if let Some(known) = parts.api.get(&uid) {
                let object = object(&known.name);
                parts.client.unread().note(READER, &object, Vec::new());
            }
            parts.api.remove(&uid);
            stored.put(uid, None);
            return true;
        }
        Told::Wants(pod, rejection) => {
            parts.gate.judge(&pod.uid, rejection);
            let desired = Arc::make_mut(desired);
            desired.pods.insert(pod.name.clone(), pod);
            return true;
        }
        Told::Remember(uid, json) => stored.put(uid, Some(json)),
        Told::Unknown(pod, paths) => {
            let message = format!(
                "this node does not know these fields and runs the pod without them: {}",
                paths.join(", ")
            );
            warn!(pod = %pod.name, "{message}");
            let (kind, reason) = (EventType::Warning, "UnknownFields");
            parts.recorder.pod(&pod, None, kind, reason, &message);
        }
        Told::Resize(pod, message) => {
            let (kind, reason) = (EventType::Warning, "ResizeInfeasible");
            parts.recorder.pod(&pod, None, kind, reason, &message);
        }
        Told::Unread(name, fields) => parts.client.unread().note(READER, &object(&name), fields),
        Told::Nonsense(Nonsense { name, problem }) => match name {
            Some(name) => {
                let field = String::new();
                let fields = vec![LeftOut { field, problem }];
                let unread = parts.client.unread();
                unread.note_for_a_while(READER, &object(&name), fields);
            }
            None => warn!(problem, "The API server sent something that is no pod"),
        },
        Told::Complete => {
            let desired = Arc::make_mut(desired);
            desired.waiting_for.clear();
            return desired.ready.insert(PodSource::Api);
        }
    }
    false
}

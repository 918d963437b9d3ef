//! Turns scans of directories and URLs into desired pods and the status of each manifest. Has no
//! side effects, so that table tests cover every rule.

mod identity;
mod interpret;
mod manifest;
mod manifest_events;
mod report;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use rubelet_api::{
    annotations::CONFIG_SEEN,
    pod::{Pod, PodSource},
};
use rubelet_base::{PodName, PodUid};
use serde::{Deserialize, Serialize};

use crate::{
    desired::Desired,
    status::{ManifestEvent, ManifestStatus, Problem, Reason},
};
use identity::{KnownPod, NameFacts, NewDefinition, identify};
use manifest::{DefinedPod, Manifest};

pub use identity::{AdoptedPod, AdoptedPods, ManifestEdits};

/// Maximum size of a manifest.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 10 * 1024 * 1024;

/// Number of removed pods whose UIDs are kept.
const MAX_REMOVED: usize = 1024;

/// One scan of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// The source was read completely. A manifest that is not listed no longer exists.
    Scanned {
        /// The source.
        source: PodSource,
        /// True if the source is one file or URL and not a directory.
        single: bool,
        /// Each manifest: path or URL, and its content.
        manifests: Vec<(Box<str>, Content)>,
    },
    /// The source can't be read. Its pods stay unchanged.
    Failed {
        /// The source.
        source: PodSource,
        /// The directory, file or URL.
        origin: Box<str>,
        /// Why.
        problem: Problem,
    },
}

/// The content of one manifest in a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The same as in the previous scan, or unknown yet.
    Unchanged,
    /// New content.
    Bytes(Vec<u8>),
    /// New content after the manifest was removed in between.
    Recreated(Vec<u8>),
    /// Not a manifest, by its name or type.
    Skipped(Reason),
    /// A manifest that can't be read.
    Refused(Problem),
}

/// The last good definition of a pod whose manifest is currently not usable. The caller stores it,
/// so that the pod survives a restart of the agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LastGoodPod {
    /// `file` or `http`.
    pub source: Box<str>,
    /// The path or URL.
    pub origin: Box<str>,
    /// `metadata.namespace` of the pod.
    pub namespace: Box<str>,
    /// `metadata.name` of the pod, with the node's name.
    pub name: Box<str>,
    /// The manifest that defined it.
    pub text: Box<str>,
}

/// The changes by a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// True if [`SourceState::desired`] changed.
    pub desired: bool,
    /// True if [`SourceState::statuses`] changed.
    pub statuses: bool,
    /// True if [`SourceState::held`] changed.
    pub held: bool,
    /// Events for the operator.
    pub events: Vec<ManifestEvent>,
}

/// The state of all manifests.
#[derive(Debug)]
pub struct SourceState {
    node_name: Box<str>,
    edits: ManifestEdits,
    sources: BTreeMap<PodSource, SourceRecord>,
    adopted: AdoptedPods,
    /// UIDs of pods that no manifest defines any more: they may still be terminating.
    removed: BTreeMap<PodName, PodUid>,
    /// The manifest that owns each pod.
    owners: BTreeMap<PodName, ManifestKey>,
    desired: Arc<Desired>,
    statuses: Arc<Vec<ManifestStatus>>,
    held: Arc<Vec<LastGoodPod>>,
}

/// A manifest: source and origin.
type ManifestKey = (PodSource, Box<str>);

#[derive(Debug, Default)]
struct SourceRecord {
    ready: bool,
    read_failure: Option<ReadFailure>,
    manifests: BTreeMap<Box<str>, Manifest>,
}

/// The error of a source that can't be read.
#[derive(Debug)]
struct ReadFailure {
    origin: Box<str>,
    problem: Problem,
}

impl SourceState {
    /// The state before the first scan. `sources` are the configured ones; `held` are the last good
    /// pods of a previous run of the agent, until a scan replaces them.
    #[must_use]
    pub fn new(
        node_name: &str,
        edits: ManifestEdits,
        sources: &[PodSource],
        adopted: AdoptedPods,
        held: &[LastGoodPod],
        now: Timestamp,
    ) -> Self {
        let mut state = Self {
            node_name: node_name.into(),
            edits,
            sources: sources
                .iter()
                .map(|source| (*source, SourceRecord::default()))
                .collect(),
            adopted,
            removed: BTreeMap::new(),
            owners: BTreeMap::new(),
            desired: Arc::default(),
            statuses: Arc::default(),
            held: Arc::default(),
        };
        for pod in held {
            state.restore(pod, now);
        }
        state.assign_owners();
        state
    }

    /// The pods to run.
    #[must_use]
    pub fn desired(&self) -> &Arc<Desired> {
        &self.desired
    }

    /// The status of each manifest, sorted by source and origin.
    #[must_use]
    pub fn statuses(&self) -> &Arc<Vec<ManifestStatus>> {
        &self.statuses
    }

    /// Pods whose manifest is currently not usable, sorted.
    #[must_use]
    pub fn held(&self) -> &Arc<Vec<LastGoodPod>> {
        &self.held
    }

    /// Applies a scan made at `now`. Scans of sources that are not configured are ignored.
    pub fn apply(&mut self, observation: Observation, now: Timestamp) -> Changes {
        let mut events = Vec::new();
        match observation {
            Observation::Failed {
                source,
                origin,
                problem,
            } => {
                let Some(record) = self.sources.get_mut(&source) else {
                    return Changes::default();
                };
                let before = record
                    .read_failure
                    .as_ref()
                    .map(|read_failure| read_failure.problem.reason);
                if before != Some(problem.reason) {
                    events.push(manifest_events::failed(&origin, &[&problem], None, None));
                }
                record.read_failure = Some(ReadFailure { origin, problem });
            }
            Observation::Scanned {
                source,
                single,
                manifests,
            } => {
                let Some(record) = self.sources.get_mut(&source) else {
                    return Changes::default();
                };
                if let Some(read_failure) = record.read_failure.take() {
                    events.push(manifest_events::recovered(&read_failure.origin));
                }
                let mut before = std::mem::take(&mut record.manifests);
                for (origin, content) in manifests {
                    let manifest = before.remove(&origin);
                    if manifest.is_none() && content == Content::Unchanged {
                        continue;
                    }
                    let manifest = self.update(source, &origin, manifest, content, now);
                    self.sources
                        .entry(source)
                        .or_default()
                        .manifests
                        .insert(origin, manifest);
                }
                let record = self.sources.entry(source).or_default();
                let unknown = single && record.manifests.values().any(Manifest::is_undetermined);
                record.ready |= !unknown;
            }
        }
        let mut changes = self.assign_owners();
        for (origin, manifest) in self
            .sources
            .values_mut()
            .flat_map(|source| &mut source.manifests)
        {
            let uid_of = |name: &str| {
                let pod = self
                    .desired
                    .pods
                    .values()
                    .find(|pod| pod.name.to_string() == name)?;
                Some((pod.name.clone(), pod.uid.clone()))
            };
            events.extend(manifest.new_events(origin, uid_of));
        }
        changes.events = events;
        changes
    }

    /// Updates a manifest after a scan.
    fn update(
        &self,
        source: PodSource,
        origin: &str,
        before: Option<Manifest>,
        content: Content,
        now: Timestamp,
    ) -> Manifest {
        let mut manifest = before.unwrap_or_default();
        let replaces = self.edits == ManifestEdits::Replace;
        let recreated = replaces && matches!(content, Content::Recreated(_));
        match content {
            Content::Unchanged => {}
            Content::Skipped(reason) => manifest.skip(reason, now),
            Content::Refused(problem) => manifest.refuse(problem, now),
            Content::Bytes(bytes) | Content::Recreated(bytes) => {
                if manifest.is_same(&bytes) && !recreated {
                    return manifest;
                }
                let known = |name: &PodName, content: &str| {
                    // A pod that another manifest owns was not removed with this one.
                    let owner = self.owners.get(name);
                    let recreated =
                        recreated && owner.is_some_and(|it| it.0 == source && *it.1 == *origin);
                    self.known(name, content, recreated, now)
                };
                let found = interpret::interpret(&bytes, &self.node_name, source, origin, known);
                let current = |name: &PodName| self.desired.pods.get(name).cloned();
                manifest.replace(&bytes, found, current, now);
            }
        }
        manifest
    }

    fn restore(&mut self, held: &LastGoodPod, now: Timestamp) {
        let known = |name: &PodName, content: &str| self.known(name, content, false, now);
        let source = self
            .sources
            .keys()
            .copied()
            .find(|source| source.as_str() == &*held.source);
        let Some(source) = source else { return };
        let text = held.text.as_bytes();
        let found = interpret::interpret(text, &self.node_name, source, &held.origin, known);
        let name = PodName::new(&held.namespace, &held.name);
        if let Some(pod) = found.pods.into_iter().find(|pod| pod.name == name) {
            let manifests = &mut self.sources.entry(source).or_default().manifests;
            let manifest = manifests.entry(held.origin.clone()).or_default();
            let text = Arc::from(&*held.text);
            manifest.defined.push(DefinedPod {
                pod: Arc::new(pod),
                text,
                held: true,
            });
        }
    }

    /// The identity that a new definition of this pod keeps.
    fn known(&self, name: &PodName, content: &str, recreated: bool, now: Timestamp) -> KnownPod {
        let new = NewDefinition {
            name,
            content,
            recreated,
        };
        let facts = NameFacts {
            current: self.desired.pods.get(name).map(|pod| &**pod),
            adopted: self.adopted.get(name).map_or(&[], Vec::as_slice),
            removed: self.removed.get(name),
        };
        identify(self.edits, &new, &facts, now)
    }

    /// Assigns each pod to a manifest, and publishes the result.
    fn assign_owners(&mut self) -> Changes {
        let mut owners: BTreeMap<PodName, ManifestKey> = BTreeMap::new();
        let mut pods: BTreeMap<PodName, Arc<Pod>> = BTreeMap::new();
        // Owners keep their pods; the remaining pods are assigned in order.
        for keeps in [true, false] {
            for (source, record) in &self.sources {
                for (origin, manifest) in &record.manifests {
                    for entry in &manifest.defined {
                        let name = &entry.pod.name;
                        let owner = self
                            .owners
                            .get(name)
                            .is_some_and(|key| key.0 == *source && key.1 == *origin);
                        if owner == keeps && !owners.contains_key(name) {
                            owners.insert(name.clone(), (*source, origin.clone()));
                            pods.insert(name.clone(), Arc::clone(&entry.pod));
                        }
                    }
                }
            }
        }
        for (source, record) in &mut self.sources {
            for (origin, manifest) in &mut record.manifests {
                manifest.update_duplicates((*source, origin), &owners);
            }
        }
        for gone in self
            .owners
            .keys()
            .filter(|name| !owners.contains_key(*name))
        {
            // The pod terminates. A later one of the same name is a new pod.
            self.adopted.remove(gone);
            if let Some(pod) = self.desired.pods.get(gone) {
                self.removed.insert(gone.clone(), pod.uid.clone());
            }
        }
        while self.removed.len() > MAX_REMOVED {
            self.removed.pop_first();
        }
        self.owners = owners;
        self.publish(pods)
    }

    fn publish(&mut self, pods: BTreeMap<PodName, Arc<Pod>>) -> Changes {
        let (ready, waiting): (Vec<_>, Vec<_>) =
            self.sources.iter().partition(|(_, record)| record.ready);
        let keys = |list: Vec<(&PodSource, &SourceRecord)>| -> BTreeSet<PodSource> {
            list.into_iter().map(|(source, _)| *source).collect()
        };
        let desired = Desired {
            pods,
            ready: keys(ready),
            waiting_for: keys(waiting),
        };
        let statuses = report::statuses(&self.sources, &self.owners);
        let held = report::held(&self.sources, &self.owners);
        Changes {
            desired: replace(&mut self.desired, desired),
            statuses: replace(&mut self.statuses, statuses),
            held: replace(&mut self.held, held),
            events: Vec::new(),
        }
    }
}

/// The time when the pod was first seen.
fn seen(pod: &Pod) -> Option<Timestamp> {
    pod.annotations.get(CONFIG_SEEN)?.parse().ok()
}

fn replace<T: PartialEq>(place: &mut Arc<T>, new: T) -> bool {
    let changed = **place != new;
    if changed {
        *place = Arc::new(new);
    }
    changed
}

#[cfg(test)]
mod tests;

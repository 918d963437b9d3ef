//! Translates changes of the watch to updates of the source. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use rubelet_api::pod::Pod;
use rubelet_base::{PodName, PodUid};
use rubelet_kube::Change;
use rubelet_node_plan::admission::Rejection;
use rubelet_yaml::SkippedField;
use serde_json::value::RawValue;

use super::{
    ApiPod,
    read::{InvalidObject, Parsed, parse, read_header},
};

/// JSON of a pod.
pub(super) type Json = Box<RawValue>;

/// One update for the others, in order.
#[derive(Debug)]
pub(super) enum SourceUpdate {
    /// The API server has this of a pod.
    Observed(ApiPod),
    /// The API server no longer has this pod.
    Removed(PodUid),
    /// This pod must run, or end.
    Desired(Arc<Pod>, Option<Rejection>),
    /// The JSON of the pod that is stored on disk.
    Persist(PodUid, Json),
    /// Fields of the pod that this release does not know: their paths.
    UnknownFields(Arc<Pod>, Vec<String>),
    /// A resize of the pod that is not made: the event's message.
    ResizeInfeasible(Arc<Pod>, String),
    /// Fields of the pod's metadata that can't be read; none if all can.
    UnreadableFields(PodName, Vec<SkippedField>),
    /// Something that is not a pod, or has no usable UID or name.
    Invalid(InvalidObject),
    /// All pods of the node were listed.
    ListComplete,
}

/// The pods as they were last reported.
#[derive(Debug, Default)]
pub(super) struct ApiState {
    pods: BTreeMap<PodUid, TrackedPod>,
    /// Fields that were warned of.
    warned: BTreeSet<String>,
}

#[derive(Debug)]
struct TrackedPod {
    fingerprint: u64,
    name: PodName,
    /// `None` for a mirror pod.
    pod: Option<Arc<Pod>>,
    /// The pod that a mirror pod shows.
    shows: Option<Arc<Pod>>,
    /// Its fields that can't be decoded, beside those of its metadata.
    unread: Vec<SkippedField>,
}

impl ApiState {
    /// Whether the API server has listed this pod.
    pub(super) fn knows(&self, uid: &PodUid) -> bool {
        self.pods.contains_key(uid)
    }

    /// The updates that follow from a change.
    pub(super) fn apply(&mut self, change: Change<Json>, node_name: &str) -> Vec<SourceUpdate> {
        let mut updates = Vec::new();
        match change {
            Change::Listed(pods) => {
                let mut gone: BTreeSet<PodUid> = self.pods.keys().cloned().collect();
                for json in pods {
                    match self.put(json, node_name, &mut updates) {
                        Ok(uid) => {
                            gone.remove(&uid);
                        }
                        // The unreadable object may be any of the missing ones: a running pod must not end
                        // because one object cannot be read.
                        Err(None) => gone.clear(),
                        Err(Some(name)) => {
                            gone.retain(|uid| {
                                self.pods.get(uid).is_some_and(|pod| pod.name != name)
                            });
                        }
                    }
                }
                for uid in gone {
                    self.pods.remove(&uid);
                    updates.push(SourceUpdate::Removed(uid));
                }
                updates.push(SourceUpdate::ListComplete);
            }
            // An object without a usable UID is reported as invalid.
            Change::Applied(json) => drop(self.put(json, node_name, &mut updates)),
            Change::Deleted(json) => match read_header(&json) {
                Ok(seen) => {
                    if self.pods.remove(&seen.api.uid).is_some() {
                        updates.push(SourceUpdate::Removed(seen.api.uid));
                    }
                }
                Err(invalid) => updates.push(SourceUpdate::Invalid(invalid)),
            },
        }
        updates
    }

    /// Takes in a pod: its UID, or at least its name.
    fn put(
        &mut self,
        json: Json,
        node_name: &str,
        updates: &mut Vec<SourceUpdate>,
    ) -> Result<PodUid, Option<PodName>> {
        let seen = match read_header(&json) {
            Ok(seen) => seen,
            Err(invalid) => {
                let name = invalid.name.clone();
                updates.push(SourceUpdate::Invalid(invalid));
                return Err(name);
            }
        };
        let name = seen.api.name.clone();
        let mut unread = seen.left_out;
        let (mut api, fingerprint) = (seen.api, seen.fingerprint);
        let uid = api.uid.clone();
        let old = self.pods.get(&uid);
        // The requests are the same: the pod keeps its `Arc`, and no edit is reported.
        if let Some(old) = old.filter(|old| old.fingerprint == fingerprint) {
            api.pod = old.pod.clone();
            api.shows = old.shows.clone();
            unread.extend(old.unread.iter().cloned());
            updates.push(SourceUpdate::UnreadableFields(name, unread));
            updates.push(SourceUpdate::Observed(api));
            return Ok(uid);
        }
        let known = old.and_then(|old| old.pod.clone());
        if api.mirror.is_some() {
            updates.push(SourceUpdate::UnreadableFields(name.clone(), unread));
            let shown = parse(&json, &api, node_name, None);
            if shown.rejection.is_none() {
                // Its text is not needed.
                let json = "".into();
                api.shows = Some(Arc::new(Pod {
                    json,
                    ..Pod::clone(&shown.pod)
                }));
            }
            let seen = TrackedPod {
                fingerprint,
                name,
                pod: None,
                shows: api.shows.clone(),
                unread: Vec::new(),
            };
            self.pods.insert(uid.clone(), seen);
            updates.push(SourceUpdate::Observed(api));
            return Ok(uid);
        }
        let Parsed {
            pod,
            rejection,
            mut unknown,
            left_out,
            resize,
        } = parse(&json, &api, node_name, known.as_deref());
        unknown.retain(|path| self.warned.insert(path.clone()));
        api.pod = Some(Arc::clone(&pod));
        unread.extend(left_out.iter().cloned());
        updates.push(SourceUpdate::UnreadableFields(name.clone(), unread));
        let seen = TrackedPod {
            fingerprint,
            name,
            pod: Some(Arc::clone(&pod)),
            shows: None,
            unread: left_out,
        };
        self.pods.insert(uid.clone(), seen);
        // First, because handlers of the later updates look it up on the board.
        updates.push(SourceUpdate::Observed(api));
        if !unknown.is_empty() {
            updates.push(SourceUpdate::UnknownFields(Arc::clone(&pod), unknown));
        }
        let is_news = |known: &Arc<Pod>| {
            known.resize_infeasible.is_none() || known.generation != pod.generation
        };
        if let Some(message) = resize.filter(|_| known.as_ref().is_none_or(is_news)) {
            updates.push(SourceUpdate::ResizeInfeasible(Arc::clone(&pod), message));
        }
        updates.push(SourceUpdate::Desired(pod, rejection));
        updates.push(SourceUpdate::Persist(uid.clone(), json));
        Ok(uid)
    }
}

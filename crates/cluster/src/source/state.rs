//! What a change that the watch tells means. No effects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use rubelet_api::pod::Pod;
use rubelet_base::{PodName, PodUid};
use rubelet_kube::Change;
use rubelet_kubelet::cluster_view::Rejection;
use rubelet_yaml::LeftOut;
use serde_json::value::RawValue;

use super::{
    ApiPod,
    read::{Nonsense, Parsed, glance, parse},
};

/// JSON of a pod.
pub(super) type Json = Box<RawValue>;

/// One thing to tell the others, in order.
#[derive(Debug)]
pub(super) enum Told {
    /// The API server has this of a pod.
    Has(ApiPod),
    /// The API server no longer has this pod.
    Lost(PodUid),
    /// This pod is to run, or to end.
    Wants(Arc<Pod>, Option<Rejection>),
    /// The pod as it is to be remembered.
    Remember(PodUid, Json),
    /// Fields of the pod that this release does not know: their paths.
    Unknown(Arc<Pod>, Vec<String>),
    /// A resize of the pod that is not made: the event's message.
    Resize(Arc<Pod>, String),
    /// Fields of the pod's metadata that can't be read; none if all can.
    Unread(PodName, Vec<LeftOut>),
    /// Something that is no pod that could be told apart from others.
    Nonsense(Nonsense),
    /// All pods of the node were told.
    Complete,
}

/// The pods as they were told last.
#[derive(Debug, Default)]
pub(super) struct ApiState {
    pods: BTreeMap<PodUid, Seen>,
    /// Fields that were warned of.
    warned: BTreeSet<String>,
}

#[derive(Debug)]
struct Seen {
    fingerprint: u64,
    name: PodName,
    /// `None` for a mirror pod.
    pod: Option<Arc<Pod>>,
    /// What a mirror pod shows.
    shows: Option<Arc<Pod>>,
    /// What of it can't be read beside what the first look at it tells.
    unread: Vec<LeftOut>,
}

impl ApiState {
    /// Whether the API server has named this pod.
    pub(super) fn knows(&self, uid: &PodUid) -> bool {
        self.pods.contains_key(uid)
    }

    /// What follows from a change.
    pub(super) fn apply(&mut self, change: Change<Json>, node_name: &str) -> Vec<Told> {
        let mut told = Vec::new();
        match change {
            Change::Listed(pods) => {
                let mut gone: BTreeSet<PodUid> = self.pods.keys().cloned().collect();
                for json in pods {
                    match self.put(json, node_name, &mut told) {
                        Ok(uid) => {
                            gone.remove(&uid);
                        }
                        // It may be any of those that seem to be gone. What runs is not ended for
                        // that one object can't be read.
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
                    told.push(Told::Lost(uid));
                }
                told.push(Told::Complete);
            }
            // What can't be told apart from other pods is told as such.
            Change::Applied(json) => drop(self.put(json, node_name, &mut told)),
            Change::Deleted(json) => match glance(&json) {
                Ok(seen) => {
                    if self.pods.remove(&seen.api.uid).is_some() {
                        told.push(Told::Lost(seen.api.uid));
                    }
                }
                Err(nonsense) => told.push(Told::Nonsense(nonsense)),
            },
        }
        told
    }

    /// Takes in a pod: its UID, or at least its name.
    fn put(
        &mut self,
        json: Json,
        node_name: &str,
        told: &mut Vec<Told>,
    ) -> Result<PodUid, Option<PodName>> {
        let seen = match glance(&json) {
            Ok(seen) => seen,
            Err(nonsense) => {
                let name = nonsense.name.clone();
                told.push(Told::Nonsense(nonsense));
                return Err(name);
            }
        };
        let name = seen.api.name.clone();
        let mut unread = seen.left_out;
        let (mut api, fingerprint) = (seen.api, seen.fingerprint);
        let uid = api.uid.clone();
        let old = self.pods.get(&uid);
        if let Some(old) = old.filter(|old| old.fingerprint == fingerprint) {
            api.pod = old.pod.clone();
            api.shows = old.shows.clone();
            unread.extend(old.unread.iter().cloned());
            told.push(Told::Unread(name, unread));
            told.push(Told::Has(api));
            return Ok(uid);
        }
        let known = old.and_then(|old| old.pod.clone());
        if api.mirror.is_some() {
            told.push(Told::Unread(name.clone(), unread));
            let shown = parse(&json, &api, node_name, None);
            if shown.rejection.is_none() {
                // Its text is not needed.
                let json = "".into();
                api.shows = Some(Arc::new(Pod {
                    json,
                    ..Pod::clone(&shown.pod)
                }));
            }
            let seen = Seen {
                fingerprint,
                name,
                pod: None,
                shows: api.shows.clone(),
                unread: Vec::new(),
            };
            self.pods.insert(uid.clone(), seen);
            told.push(Told::Has(api));
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
        told.push(Told::Unread(name.clone(), unread));
        let seen = Seen {
            fingerprint,
            name,
            pod: Some(Arc::clone(&pod)),
            shows: None,
            unread: left_out,
        };
        self.pods.insert(uid.clone(), seen);
        // Whoever is told of the pod may ask what the API server has of it.
        told.push(Told::Has(api));
        if !unknown.is_empty() {
            told.push(Told::Unknown(Arc::clone(&pod), unknown));
        }
        let is_news = |known: &Arc<Pod>| {
            known.resize_infeasible.is_none() || known.generation != pod.generation
        };
        if let Some(message) = resize.filter(|_| known.as_ref().is_none_or(is_news)) {
            told.push(Told::Resize(Arc::clone(&pod), message));
        }
        told.push(Told::Wants(pod, rejection));
        told.push(Told::Remember(uid.clone(), json));
        Ok(uid)
    }
}

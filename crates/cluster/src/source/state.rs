//! What a change that the watch tells means. No effects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use rubelet_api::pod::Pod;
use rubelet_base::PodUid;
use rubelet_kube::Change;
use rubelet_kubelet::cluster_view::Rejection;
use serde_json::value::RawValue;

use super::{
    ApiPod,
    read::{Parsed, glance, parse},
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
    /// Something that is no pod.
    Nonsense(String),
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
    /// `None` for a mirror pod.
    pod: Option<Arc<Pod>>,
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
                    if let Some(uid) = self.put(json, node_name, &mut told) {
                        gone.remove(&uid);
                    }
                }
                for uid in gone {
                    self.pods.remove(&uid);
                    told.push(Told::Lost(uid));
                }
                told.push(Told::Complete);
            }
            Change::Applied(json) => {
                self.put(json, node_name, &mut told);
            }
            Change::Deleted(json) => match glance(&json) {
                Ok(seen) => {
                    if self.pods.remove(&seen.api.uid).is_some() {
                        told.push(Told::Lost(seen.api.uid));
                    }
                }
                Err(error) => told.push(Told::Nonsense(error.to_string())),
            },
        }
        told
    }

    fn put(&mut self, json: Json, node_name: &str, told: &mut Vec<Told>) -> Option<PodUid> {
        let seen = match glance(&json) {
            Ok(seen) => seen,
            Err(error) => {
                told.push(Told::Nonsense(error.to_string()));
                return None;
            }
        };
        let (mut api, fingerprint) = (seen.api, seen.fingerprint);
        let uid = api.uid.clone();
        let old = self.pods.get(&uid);
        if let Some(old) = old.filter(|old| old.fingerprint == fingerprint) {
            api.pod = old.pod.clone();
            told.push(Told::Has(api));
            return Some(uid);
        }
        if api.mirror.is_some() {
            let seen = Seen {
                fingerprint,
                pod: None,
            };
            self.pods.insert(uid.clone(), seen);
            told.push(Told::Has(api));
            return Some(uid);
        }
        let Parsed {
            pod,
            rejection,
            mut unknown,
        } = parse(&json, &api, node_name);
        unknown.retain(|path| self.warned.insert(path.clone()));
        api.pod = Some(Arc::clone(&pod));
        let seen = Seen {
            fingerprint,
            pod: Some(Arc::clone(&pod)),
        };
        self.pods.insert(uid.clone(), seen);
        // Whoever is told of the pod may ask what the API server has of it.
        told.push(Told::Has(api));
        if !unknown.is_empty() {
            told.push(Told::Unknown(Arc::clone(&pod), unknown));
        }
        told.push(Told::Wants(pod, rejection));
        told.push(Told::Remember(uid.clone(), json));
        Some(uid)
    }
}

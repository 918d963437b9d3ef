//! The services that variables are made of. Pods without links need the API server's own only; all
//! services are watched when a pod wants links, and no longer than that.

use std::{collections::BTreeMap, sync::Arc};

use rubelet_api::pod::{Pod, PodSource};
use rubelet_kube::WatchTarget;

use super::{
    files::FileKey,
    read::WATCH_SYNC_TIMEOUT,
    read_error::ObjectReadError,
    records::ServicesRecord,
    service_env::{Service, variables},
    shared::{ObjectsInner, ObjectsState, TrackedPod},
    watch_cache::{CacheView, WatchCache, never, weak_callback},
    wire::{self, Key},
};

/// The service that every container gets.
const MASTER: (&str, &str) = ("default", "kubernetes");

impl ObjectsInner {
    /// Watches the services that the pod needs.
    pub(super) fn watch_services(self: &Arc<Self>, pod: &Pod) {
        if pod.spec.enable_service_links {
            let on_change = weak_callback(self, |shared, _| shared.on_services_change());
            let target = || target("/api/v1/services", None);
            self.services
                .start(&*self.api, target, wire::service, never, on_change);
        } else if !self.services.runs() {
            let on_change = weak_callback(self, |shared, _| shared.on_services_change());
            let path = format!("/api/v1/namespaces/{}/services", MASTER.0);
            let target = || target(&path, Some(format!("metadata.name={}", MASTER.1)));
            self.kubernetes
                .start(&*self.api, target, wire::service, never, on_change);
        }
    }

    /// The variables of services for a pod's containers. Pods of the API server wait until the
    /// services were read once.
    pub(super) async fn service_variables(
        self: &Arc<Self>,
        pod: &Pod,
    ) -> Result<Vec<(String, String)>, ObjectReadError> {
        self.watch_services(pod);
        let links = pod.spec.enable_service_links;
        let all = links || self.services.runs();
        let cache = if all {
            &self.services
        } else {
            &self.kubernetes
        };
        let waits = pod.source == PodSource::Api && !cache.view().read;
        if waits && !cache.is_read_within(WATCH_SYNC_TIMEOUT).await {
            self.state().wake_when_services_read = true;
            self.load_services(cache).await;
            if !cache.view().read {
                return Err(ObjectReadError::ServicesNotRead);
            }
        }
        Ok(variables(of_namespace(
            &cache.view(),
            &pod.name.namespace,
            links,
        )))
    }

    /// While the API server is unreachable, uses those that an earlier process read.
    async fn load_services(&self, cache: &WatchCache<Arc<Service>>) {
        let path = format!("/api/v1/namespaces/{}/services/{}", MASTER.0, MASTER.1);
        if !self.is_away(&path).await {
            return;
        }
        if let Some(record) = self.files.load::<ServicesRecord>(&FileKey::Services).await {
            let known = record
                .services
                .into_iter()
                .map(|(namespace, service)| ((namespace, service.name.clone()), Arc::new(service)));
            cache.restore(known.collect());
        }
    }

    fn on_services_change(&self) {
        let mut state = self.state();
        if std::mem::take(&mut state.wake_when_services_read) {
            state.pods.values().for_each(TrackedPod::tell);
        }
        drop(state);
        self.is_dirty(FileKey::Services);
    }

    /// For the file: what the pods here need of it. `None` while nothing is known.
    pub(super) fn services_record(&self, state: &ObjectsState) -> Option<ServicesRecord> {
        let mut needed = BTreeMap::new();
        for cache in [&self.kubernetes, &self.services] {
            let view = cache.view();
            if !view.read {
                continue;
            }
            for (key, service) in &view.known {
                let linked = |tracked: &TrackedPod| {
                    tracked.pod.spec.enable_service_links && *tracked.pod.name.namespace == *key.0
                };
                if is_master(key) || state.pods.values().any(linked) {
                    needed.insert(key.clone(), Arc::clone(service));
                }
            }
        }
        let known = self.kubernetes.view().read || self.services.view().read;
        let services = needed.into_iter();
        known.then(|| ServicesRecord {
            services: services
                .map(|((namespace, _), service)| (namespace, Service::clone(&service)))
                .collect(),
        })
    }
}

/// The services that a pod of this namespace gets, each name once.
fn of_namespace(view: &CacheView<Arc<Service>>, namespace: &str, links: bool) -> Vec<Arc<Service>> {
    let mut found: BTreeMap<&str, &Arc<Service>> = BTreeMap::new();
    let master = (MASTER.0.into(), MASTER.1.into());
    if let Some(service) = view.known.get(&master) {
        found.insert(MASTER.1, service);
    }
    if links {
        let first: Key = (namespace.into(), "".into());
        let own = view.known.range(first..);
        for ((_, name), service) in own.take_while(|((of, _), _)| **of == *namespace) {
            found.insert(name, service);
        }
    }
    found.into_values().cloned().collect()
}

fn is_master(key: &Key) -> bool {
    (&*key.0, &*key.1) == MASTER
}

fn target(path: &str, field_selector: Option<String>) -> WatchTarget {
    WatchTarget {
        path: path.to_owned(),
        field_selector,
        label_selector: None,
    }
}

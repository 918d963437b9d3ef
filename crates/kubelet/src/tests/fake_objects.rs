//! API objects that pods of tests use, in memory.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use rubelet_api::{
    objects::{ConfigMap, PodObjects, Secret, Token},
    pod::Pod,
};
use rubelet_base::{PodUid, event_reason};
use rubelet_cri::v1;
use rubelet_node_state::{
    host_error::{HostError, HostWarning},
    keyring::PullLogin,
    objects::{
        CONFIG_ERROR, ObjectRefs, ObjectSource, ServiceAccount, ServiceAccountError,
        ServiceAccounts, never,
    },
};
use tokio::sync::watch;

/// All objects of one namespace. Like an API server, it outlives agents.
#[derive(Default)]
pub(super) struct FakeObjects {
    state: Mutex<ObjectsState>,
}

#[derive(Default)]
struct ObjectsState {
    objects: PodObjects,
    handlers: BTreeMap<String, String>,
    credentials: Vec<PullLogin>,
    notes: Vec<HostWarning>,
    /// The error of all reads, if set.
    unavailable: Option<String>,
    pods: BTreeMap<PodUid, watch::Sender<u64>>,
    reads: usize,
}

impl FakeObjects {
    /// Sets a config map with one key and notifies pods.
    pub(super) fn set_config_map(&self, name: &str, key: &str, value: &str) {
        let map = ConfigMap {
            data: [(key.into(), value.as_bytes().into())].into(),
            ..ConfigMap::default()
        };
        self.change(|state| {
            let maps = &mut state.objects.config_maps;
            maps.insert(name.into(), Arc::new(map));
        });
    }

    /// Sets a secret with one key and notifies pods.
    pub(super) fn set_secret(&self, name: &str, key: &str, value: &str) {
        let secret = Secret {
            kind: "Opaque".into(),
            data: [(key.into(), value.as_bytes().into())].into(),
        };
        self.change(|state| {
            let secrets = &mut state.objects.secrets;
            secrets.insert(name.into(), Arc::new(secret));
        });
    }

    /// Sets the one environment variable that describes services.
    pub(super) fn set_service(&self, name: &str, value: &str) {
        let variable = (name.to_owned(), value.to_owned());
        self.state().objects.services = vec![variable];
    }

    /// Sets a runtime class with this handler.
    pub(super) fn set_handler(&self, class: &str, handler: &str) {
        let (class, handler) = (class.to_owned(), handler.to_owned());
        self.state().handlers.insert(class, handler);
    }

    /// Sets the users that pulls try, and a warning about those that are missing.
    pub(super) fn set_credentials(&self, users: &[&str], note: Option<HostWarning>) {
        let auth = |user: &&str| {
            let auth = v1::AuthConfig {
                username: (*user).to_owned(),
                password: "hunter2".to_owned(),
                ..v1::AuthConfig::default()
            };
            PullLogin::of_secret(auth, &format!("uid-{user}"), "default", user)
        };
        let mut state = self.state();
        state.credentials = users.iter().map(auth).collect();
        state.notes = note.into_iter().collect();
    }

    /// Makes all reads fail with this error, or succeed again with `None`; notifies pods.
    pub(super) fn set_unavailable(&self, why: Option<&str>) {
        self.change(|state| state.unavailable = why.map(str::to_owned));
    }

    /// Number of reads so far.
    pub(super) fn reads(&self) -> usize {
        self.state().reads
    }

    /// Whether the pod is tracked.
    pub(super) fn tracks(&self, uid: &str) -> bool {
        self.state().pods.contains_key(&PodUid::from(uid))
    }

    fn change(&self, change: impl FnOnce(&mut ObjectsState)) {
        let mut state = self.state();
        change(&mut state);
        for news in state.pods.values() {
            news.send_modify(|count| *count += 1);
        }
    }

    fn state(&self) -> MutexGuard<'_, ObjectsState> {
        self.state.lock()
    }
}

/// Service accounts have the UID `uid-NAME`, and no annotations.
#[async_trait]
impl ServiceAccounts for FakeObjects {
    async fn service_account(&self, pod: &Pod) -> Result<ServiceAccount, ServiceAccountError> {
        Ok(ServiceAccount {
            uid: format!("uid-{}", pod.spec.service_account).into(),
            ..ServiceAccount::default()
        })
    }

    async fn service_account_token(
        &self,
        pod: &Pod,
        uid: &str,
        audience: &str,
    ) -> Result<Token, ServiceAccountError> {
        Ok(Token(format!("{audience}-{uid}-{}", pod.uid).into()))
    }
}

#[async_trait]
impl ObjectSource for FakeObjects {
    fn track(&self, pod: &Arc<Pod>) {
        let mut state = self.state();
        let news = || watch::channel(0).0;
        state.pods.entry(pod.uid.clone()).or_insert_with(news);
    }

    fn forget(&self, uid: &PodUid) {
        self.state().pods.remove(uid);
    }

    async fn objects(&self, pod: &Arc<Pod>, refs: ObjectRefs<'_>) -> Result<PodObjects, HostError> {
        let mut state = self.state();
        assert!(state.pods.contains_key(&pod.uid), "only tracked pods read");
        state.reads += 1;
        let reason = match refs {
            ObjectRefs::Volumes => event_reason::FAILED_MOUNT,
            ObjectRefs::Environment(_) => CONFIG_ERROR,
        };
        match state.unavailable.clone() {
            Some(message) => Err(HostError { reason, message }),
            None => Ok(state.objects.clone()),
        }
    }

    async fn pull_credentials(&self, _: &Arc<Pod>, _: &str) -> (Vec<PullLogin>, Vec<HostWarning>) {
        let state = self.state();
        (state.credentials.clone(), state.notes.clone())
    }

    async fn runtime_handler(&self, class: &str) -> Result<String, HostError> {
        let handler = self.state().handlers.get(class).cloned();
        handler.ok_or_else(|| HostError {
            reason: event_reason::FAILED_SANDBOX,
            message: format!("runtimeclass.node.k8s.io {class:?} not found"),
        })
    }

    fn changes(&self, uid: &PodUid) -> watch::Receiver<u64> {
        let state = self.state();
        state
            .pods
            .get(uid)
            .map_or_else(never, watch::Sender::subscribe)
    }
}

//! API objects that pods use: config maps, secrets, tokens, services and runtime classes.
//!
//! Only what pods of this node use is watched, each config map and secret by a watch of its own,
//! because a node may see no others; with the last pod that uses one, its watch ends. The objects
//! of tracked pods are kept on disk as well, in a directory that only root can read and secrets
//! encrypted, so that pods start again after a reboot with the API server away.
//!
//! | task | in | out |
//! |---|---|---|
//! | one for each watch (`follow`) | the API server's objects | the cache; pods are notified |
//! | [`ClusterObjects::run`] | time | watches that end, tokens that are replaced, files |
//!
//! Source of the rules: `pkg/kubelet/{configmap,secret,util/manager,token,envvars,runtimeclass}`
//! and `pkg/credentialprovider` of Kubernetes 1.36.

mod accounts;
mod api;
mod at_rest;
mod cached_object;
mod classes;
mod files;
mod maintenance;
mod object_content;
mod object_key;
mod object_refs;
mod read;
mod read_error;
mod records;
mod service_env;
mod services;
mod shared;
#[cfg(test)]
mod tests;
mod token_rules;
mod tokens;
mod tracked_token;
mod watch_cache;
mod wire;

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use rubelet_api::{
    container::Container,
    objects::{PodObjects, Token},
    pod::Pod,
};
use rubelet_base::{ErrorChain, PodUid, event_reason};
use rubelet_kube::Client;
use rubelet_node_state::{
    clock::Clock,
    host_error::{HostError, HostWarning},
    keyring::{Keyring, PullLogin},
    objects::{
        CONFIG_ERROR, ObjectRefs, ObjectSource, ServiceAccount, ServiceAccountError,
        ServiceAccounts,
    },
};
use tokio::sync::watch;
use tracing::warn;

pub use self::at_rest::SecretsAtRest;
use self::{
    api::ObjectsApi,
    files::{FileKey, Files},
    object_content::Content,
    object_key::ObjectKey,
    read_error::ObjectReadError,
    shared::ObjectsInner,
};

/// `configMapAndSecretChangeDetectionStrategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChangeDetection {
    /// `Watch`: changes come by themselves.
    #[default]
    Watch,
    /// `Cache`: what was read counts for a while.
    Cache,
    /// `Get`: read each time.
    Get,
}

/// TTL of an object with `Cache`: as the node's annotation `node.alpha.kubernetes.io/ttl`
/// specifies; without it a minute.
pub type ObjectTtl = Arc<dyn Fn() -> Option<Duration> + Send + Sync>;

/// Dependencies and settings of [`ClusterObjects`].
pub struct ObjectsParts {
    /// The API server.
    pub client: Client,
    /// Wall time.
    pub clock: Clock,
    /// The directory that keeps objects for a reboot; created with mode 0700.
    pub directory: PathBuf,
    /// Storage of secrets and tokens there.
    pub secrets: SecretsAtRest,
    /// Change detection.
    pub detection: ChangeDetection,
    /// TTL of an object with `Cache`.
    pub ttl: ObjectTtl,
    /// `syncFrequency`: a watch that is only needed to start containers ends after five times that
    /// without a start, and no earlier than after a minute; without watches, volumes are refreshed
    /// at this interval.
    pub sync_frequency: Duration,
}

/// The objects of the API server that pods of this node reference. Cheap to clone.
#[derive(Clone)]
pub struct ClusterObjects {
    shared: Arc<ObjectsInner>,
}

impl ClusterObjects {
    /// Nothing is watched yet.
    #[must_use]
    pub fn new(parts: ObjectsParts) -> Self {
        let api = Arc::new(parts.client);
        let detection = (parts.detection, parts.ttl);
        let files = Files::new(parts.directory, parts.secrets);
        Self::with_api(api, parts.clock, files, detection, parts.sync_frequency)
    }

    fn with_api(
        api: Arc<dyn ObjectsApi>,
        clock: Clock,
        files: Files,
        detection: (ChangeDetection, ObjectTtl),
        sync_frequency: Duration,
    ) -> Self {
        let shared = ObjectsInner::new(api, clock, files, detection, sync_frequency);
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Does what is due, forever.
    pub async fn run(self) {
        self.shared.run().await;
    }

    /// Writes to disk what is not written yet; for an agent that stops.
    pub async fn flush(&self) {
        self.shared.flush().await;
    }

    /// Removes the files of pods that no longer exist: everything but what these pods reference,
    /// and the tracked pods' files. To be called once the API server has listed all pods of the
    /// node.
    pub async fn sweep(&self, pods: &[Arc<Pod>]) {
        let mut keys: BTreeSet<FileKey> = [FileKey::Services, FileKey::Classes].into();
        for pod in pods {
            keys.extend(object_refs::of_pod(pod).into_keys().map(FileKey::Object));
            keys.insert(FileKey::Tokens(pod.uid.clone()));
        }
        {
            let state = self.shared.state();
            keys.extend(state.objects_by_key.keys().cloned().map(FileKey::Object));
            keys.extend(state.pods.keys().cloned().map(FileKey::Tokens));
        }
        self.shared.files.keep_only(&keys).await;
    }

    /// Objects that are watched at the moment, as `KIND NAMESPACE/NAME`, and the collections.
    #[must_use]
    pub fn watched(&self) -> Vec<String> {
        let state = self.shared.state();
        let objects_by_key = state
            .objects_by_key
            .values()
            .filter(|cached| cached.cache.runs());
        let mut found: Vec<String> = objects_by_key
            .map(|cached| {
                let key = &cached.key;
                format!("{} {}/{}", key.word(), key.namespace, key.name)
            })
            .collect();
        for (name, runs) in [
            ("services", self.shared.services.runs()),
            ("service default/kubernetes", self.shared.kubernetes.runs()),
            ("runtimeclasses", self.shared.classes.runs()),
        ] {
            if runs {
                found.push(name.to_owned());
            }
        }
        found
    }

    async fn volumes(&self, pod: &Arc<Pod>) -> Result<PodObjects, HostError> {
        let reads = pod.spec.volumes.iter().map(|volume| async move {
            let failed = |error: ObjectReadError| HostError {
                reason: event_reason::FAILED_MOUNT,
                message: format!(
                    "MountVolume.SetUp failed for volume {:?} : {}",
                    volume.name,
                    ErrorChain(&error)
                ),
            };
            let mut found = PodObjects::default();
            self.read_into(&mut found, object_refs::of_volume(pod, volume))
                .await
                .map_err(failed)?;
            for token in object_refs::tokens_of(volume) {
                let value = self.shared.token(pod, &token.request).await;
                let key = (token.volume, token.path);
                found.tokens.insert(key, value.map_err(failed)?);
            }
            Ok(found)
        });
        let mut all = PodObjects::default();
        for read in join_all(reads).await {
            let read = read?;
            all.config_maps.extend(read.config_maps);
            all.secrets.extend(read.secrets);
            all.tokens.extend(read.tokens);
        }
        Ok(all)
    }

    async fn environment(
        &self,
        pod: &Arc<Pod>,
        container: &Container,
    ) -> Result<PodObjects, HostError> {
        let failed = |error: ObjectReadError| HostError::new(CONFIG_ERROR, &error);
        let services = self.shared.service_variables(pod).await.map_err(failed)?;
        let mut found = PodObjects {
            services,
            ..PodObjects::default()
        };
        self.read_into(&mut found, object_refs::of_environment(pod, container))
            .await
            .map_err(failed)?;
        Ok(found)
    }

    async fn read_into(
        &self,
        into: &mut PodObjects,
        keys: Vec<ObjectKey>,
    ) -> Result<(), ObjectReadError> {
        let reads = keys.into_iter().map(|key| async {
            let read = self.shared.read(&key).await;
            (key, read)
        });
        for (key, read) in join_all(reads).await {
            match read?.map(|object| object.content) {
                Some(Content::ConfigMap(map)) => {
                    into.config_maps.insert(key.name, map);
                }
                Some(Content::Secret(secret)) => {
                    into.secrets.insert(key.name, secret);
                }
                None => {}
            }
        }
        Ok(())
    }
}

#[async_trait]
impl ServiceAccounts for ClusterObjects {
    async fn service_account(&self, pod: &Pod) -> Result<ServiceAccount, ServiceAccountError> {
        Ok(self.shared.service_account(pod).await?)
    }

    async fn service_account_token(
        &self,
        pod: &Pod,
        uid: &str,
        audience: &str,
    ) -> Result<Token, ServiceAccountError> {
        let request = accounts::token_request(uid, audience);
        Ok(self.shared.token(pod, &request).await?)
    }
}

#[async_trait]
impl ObjectSource for ClusterObjects {
    fn track(&self, pod: &Arc<Pod>) {
        self.shared.track(pod);
    }

    fn forget(&self, uid: &PodUid) {
        self.shared.forget(uid);
    }

    async fn objects(&self, pod: &Arc<Pod>, refs: ObjectRefs<'_>) -> Result<PodObjects, HostError> {
        let found = match refs {
            ObjectRefs::Volumes => self.volumes(pod).await?,
            ObjectRefs::Environment(container) => self.environment(pod, container).await?,
        };
        // What has started must be able to start again, even if the agent is killed right now and
        // the API server is away from now on.
        self.shared.flush().await;
        Ok(found)
    }

    async fn pull_credentials(
        &self,
        pod: &Arc<Pod>,
        image: &str,
    ) -> (Vec<PullLogin>, Vec<HostWarning>) {
        let keys = object_refs::of_pulls(pod);
        let reads = keys.into_iter().map(|key| async {
            let read = self.shared.read(&key).await;
            (key, read)
        });
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for (key, read) in join_all(reads).await {
            let problem = match read {
                Ok(Some(object)) => match &object.content {
                    Content::Secret(secret) => {
                        let mut ring = Keyring::default();
                        let added = ring.add_secret(secret);
                        let logins = ring.lookup_with_registries(image).into_iter();
                        found.extend(logins.map(|(place, auth)| {
                            let (uid, namespace, name) = (&object.uid, &key.namespace, &key.name);
                            (place, PullLogin::of_secret(auth, uid, namespace, name))
                        }));
                        added.err().map(|bad| bad.to_string())
                    }
                    Content::ConfigMap(_) => None,
                },
                Ok(None) => Some(format!("secret {:?} not found", key.name)),
                Err(error) => Some(ErrorChain(&error).to_string()),
            };
            if let Some(problem) = problem {
                warn!(pod = %pod.name, secret = %key.name, problem, "Cannot use an image pull secret");
                failed.push(key.name);
            }
        }
        // As if all secrets were one: the most exact place first, and the default registry's only
        // where nothing else fits.
        if found.iter().any(|(place, _)| !place.is_empty()) {
            found.retain(|(place, _)| !place.is_empty());
        }
        found.sort_by(|(one, _), (other, _)| other.cmp(one));
        let mut notes = Vec::new();
        if !failed.is_empty() {
            notes.push((
                "FailedToRetrieveImagePullSecret",
                format!(
                    "Unable to retrieve some image pull secrets ({}); attempting to pull the image may not succeed.",
                    failed.join(", ")
                ),
            ));
        }
        let logins = found.into_iter().map(|(_, login)| login).collect();
        (logins, notes)
    }

    async fn runtime_handler(&self, class: &str) -> Result<String, HostError> {
        let handler = self.shared.handler(class).await;
        let handler =
            handler.map_err(|error| HostError::new(event_reason::FAILED_SANDBOX, &error))?;
        self.shared.flush().await;
        Ok(handler)
    }

    fn changes(&self, uid: &PodUid) -> watch::Receiver<u64> {
        self.shared.changes(uid)
    }

    fn unconfirmed(&self, uid: &PodUid) -> Vec<String> {
        self.shared.unconfirmed(uid)
    }
}

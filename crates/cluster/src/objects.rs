//! What pods draw from the API server: config maps, secrets, tokens, services and runtime classes.
//!
//! Only what pods of this node use is watched, each config map and secret by a watch of its own,
//! because a node may see no others; with the last pod that uses one, its watch ends. The objects
//! of tracked pods are kept on disk as well, in a folder that only root can read and secrets
//! encrypted, so that pods start again after a reboot with the API server away.
//!
//! | task | in | out |
//! |---|---|---|
//! | one for each watch ([`follow`]) | what the API server has | what is known; pods are told |
//! | [`ClusterObjects::run`] | time | watches that end, tokens that are replaced, files |
//!
//! Source of the rules: `pkg/kubelet/{configmap,secret,util/manager,token,envvars,runtimeclass}`
//! and `pkg/credentialprovider` of Kubernetes 1.36.

mod api;
mod at_rest;
mod cell;
mod classes;
mod draws;
mod files;
mod follow;
mod read;
mod records;
mod service_env;
mod services;
mod shared;
#[cfg(test)]
mod tests;
mod token_rules;
mod tokens;
mod turns;
mod wire;

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use rubelet_api::{container::Container, objects::PodObjects, pod::Pod};
use rubelet_base::PodUid;
use rubelet_kube::Client;
use rubelet_kubelet::{
    clock::Clock,
    keyring::{Keyring, PullLogin},
    objects::{CONFIG_ERROR, Draw, FAILED_MOUNT, FAILED_SANDBOX, ObjectSource},
    pod_host::{HostError, Note},
};
use tokio::sync::watch;
use tracing::warn;

pub use self::at_rest::SecretsAtRest;
use self::{
    api::Api,
    cell::{Content, ObjectKey},
    files::{FileKey, Files},
    shared::Shared,
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

/// How long `Cache` keeps an object: what the node's annotation `node.alpha.kubernetes.io/ttl`
/// says; without it a minute.
pub type ObjectTtl = Arc<dyn Fn() -> Option<Duration> + Send + Sync>;

/// What this is made from.
pub struct ObjectsParts {
    /// The API server.
    pub client: Client,
    /// Wall time.
    pub clock: Clock,
    /// Where objects are kept for a reboot; made with mode 0700.
    pub folder: PathBuf,
    /// How secrets and tokens are kept there.
    pub secrets: SecretsAtRest,
    /// How changes are found.
    pub detection: ChangeDetection,
    /// How long `Cache` keeps an object.
    pub ttl: ObjectTtl,
    /// `syncFrequency`: a watch that only starts of containers need ends after five times that
    /// without one, and no earlier than after a minute; without watches, volumes are looked at
    /// again after it.
    pub sync_frequency: Duration,
}

/// What the pods of this node draw from the API server. Cheap to clone.
#[derive(Clone)]
pub struct ClusterObjects {
    shared: Arc<Shared>,
}

impl ClusterObjects {
    /// Nothing is watched yet.
    #[must_use]
    pub fn new(parts: ObjectsParts) -> Self {
        let api = Arc::new(parts.client);
        let detection = (parts.detection, parts.ttl);
        let files = Files::new(parts.folder, parts.secrets);
        Self::with_api(api, parts.clock, files, detection, parts.sync_frequency)
    }

    fn with_api(
        api: Arc<dyn Api>,
        clock: Clock,
        files: Files,
        detection: (ChangeDetection, ObjectTtl),
        sync_frequency: Duration,
    ) -> Self {
        let shared = Shared::new(api, clock, files, detection, sync_frequency);
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Does what is due, for ever.
    pub async fn run(self) {
        self.shared.run().await;
    }

    /// Writes to disk what is not written yet; for an agent that stops.
    pub async fn flush(&self) {
        self.shared.flush().await;
    }

    /// Removes what is on disk for pods that are no more: everything but what these pods draw, and
    /// those that are tracked. To be called once the API server has named all pods of the node.
    pub async fn sweep(&self, pods: &[Arc<Pod>]) {
        let mut keys: BTreeSet<FileKey> = [FileKey::Services, FileKey::Classes].into();
        for pod in pods {
            keys.extend(draws::of_pod(pod).into_keys().map(FileKey::Object));
            keys.insert(FileKey::Tokens(pod.uid.clone()));
        }
        {
            let state = self.shared.state();
            keys.extend(state.cells.keys().cloned().map(FileKey::Object));
            keys.extend(state.pods.keys().cloned().map(FileKey::Tokens));
        }
        self.shared.files.keep_only(&keys).await;
    }

    /// Objects that are watched at the moment, as `KIND NAMESPACE/NAME`, and the collections.
    #[must_use]
    pub fn watched(&self) -> Vec<String> {
        let state = self.shared.state();
        let cells = state.cells.values().filter(|cell| cell.follow.runs());
        let mut found: Vec<String> = cells
            .map(|cell| {
                let key = &cell.key;
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
            let failed = |message: String| HostError {
                reason: FAILED_MOUNT,
                message: format!(
                    "MountVolume.SetUp failed for volume {:?} : {message}",
                    volume.name
                ),
            };
            let mut found = PodObjects::default();
            self.read_into(&mut found, draws::of_volume(pod, volume))
                .await
                .map_err(failed)?;
            for token in draws::tokens_of(volume) {
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
        let failed = |message| HostError {
            reason: CONFIG_ERROR,
            message,
        };
        let services = self.shared.service_variables(pod).await.map_err(failed)?;
        let mut found = PodObjects {
            services,
            ..PodObjects::default()
        };
        self.read_into(&mut found, draws::of_environment(pod, container))
            .await
            .map_err(failed)?;
        Ok(found)
    }

    async fn read_into(&self, into: &mut PodObjects, keys: Vec<ObjectKey>) -> Result<(), String> {
        let reads = keys.into_iter().map(|key| async {
            let read = self.shared.read(&key).await;
            (key, read)
        });
        for (key, read) in join_all(reads).await {
            let object = read.map_err(|error| error.to_string())?;
            match object.map(|object| object.content) {
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
impl ObjectSource for ClusterObjects {
    fn track(&self, pod: &Arc<Pod>) {
        self.shared.track(pod);
    }

    fn forget(&self, uid: &PodUid) {
        self.shared.forget(uid);
    }

    async fn objects(&self, pod: &Arc<Pod>, draw: Draw<'_>) -> Result<PodObjects, HostError> {
        let found = match draw {
            Draw::Volumes => self.volumes(pod).await?,
            Draw::Environment(container) => self.environment(pod, container).await?,
        };
        // What has started must be able to start again, even if the agent is killed right now and
        // the API server is away from now on.
        self.shared.flush().await;
        Ok(found)
    }

    async fn pull_credentials(&self, pod: &Arc<Pod>, image: &str) -> (Vec<PullLogin>, Vec<Note>) {
        let keys = draws::of_pulls(pod);
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
                        let logins = ring.lookup_with_places(image).into_iter();
                        found.extend(logins.map(|(place, auth)| {
                            let (uid, namespace, name) = (&object.uid, &key.namespace, &key.name);
                            (place, PullLogin::of_secret(auth, uid, namespace, name))
                        }));
                        added.err().map(|bad| bad.to_string())
                    }
                    Content::ConfigMap(_) => None,
                },
                Ok(None) => Some(format!("secret {:?} not found", key.name)),
                Err(error) => Some(error.to_string()),
            };
            if let Some(problem) = problem {
                warn!(pod = %pod.name, secret = %key.name, problem, "An image pull secret can't be used");
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
        let handler = handler.map_err(|message| HostError {
            reason: FAILED_SANDBOX,
            message,
        })?;
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

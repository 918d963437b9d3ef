//! Networks by CNI plugins: the role of libcni in other runtimes.
//!
//! The configuration of ADD is recorded and used again for DEL, even if the file has changed since.

mod cache;
mod capabilities;
mod conf;
mod error;
mod exec;
mod json_file;
mod leftovers;
mod result;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use rubelet_base::ErrorChain;
use rubelet_host::netns;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::{
    Cidr, NetworkDamage, NetworkError, NetworkFailure, NetworkRequest, NetworkResult,
    NetworkSettings,
    attachment::{Attachment, AttachmentKind, CniAttachment, PodRef},
    attachments::Attachments,
    blocking::blocking,
};

pub use error::PluginError;

pub(crate) use conf::{ConfigDir, ConfigList};

use cache::INTERFACE;
use conf::Version;
use exec::PluginCall;

/// TTL of a successful STATUS: the kubelet asks every few seconds.
const STATUS_CACHE_TIME: Duration = Duration::from_secs(10);

/// Networks by CNI plugins.
pub(crate) struct PluginNetwork {
    settings: Arc<NetworkSettings>,
    attachments: Arc<Attachments>,
    pod_cidrs: Mutex<Vec<Cidr>>,
    /// The configuration with the last successful STATUS, and when.
    was_ready: Mutex<Option<(Value, Instant)>>,
}

/// A pod's attachment during a call.
struct Pod<'a> {
    sandbox: &'a str,
    netns: PathBuf,
    cni: &'a CniAttachment,
}

impl PluginNetwork {
    pub(crate) fn new(settings: Arc<NetworkSettings>, attachments: Arc<Attachments>) -> Self {
        Self {
            settings,
            attachments,
            pod_cidrs: Mutex::default(),
            was_ready: Mutex::default(),
        }
    }

    pub(crate) fn set_pod_cidrs(&self, cidrs: &[Cidr]) {
        *self.pod_cidrs.lock() = cidrs.to_vec();
    }

    /// Checks that the plugins are installed and ready.
    pub(crate) async fn status(&self, list: &ConfigList) -> Result<(), NetworkError> {
        let dirs = &self.settings.cni_bin_dirs;
        for plugin in &list.plugins {
            let for_addresses = plugin.get("ipam").and_then(|ipam| ipam["type"].as_str());
            for kind in [conf::kind(plugin)].into_iter().chain(for_addresses) {
                exec::find(kind, dirs).map_err(|error| not_ready(list, error))?;
            }
        }
        if list.version < Version::WITH_STATUS {
            return Ok(());
        }
        let was_ready = self
            .was_ready
            .lock()
            .as_ref()
            .is_some_and(|(raw, at)| *raw == list.raw && at.elapsed() < STATUS_CACHE_TIME);
        if was_ready {
            return Ok(());
        }
        let none = Map::new();
        for plugin in &list.plugins {
            let input = list.input(plugin, &none, None, &none);
            self.run(plugin, "STATUS", Vec::new(), &input)
                .await
                .map_err(|error| not_ready(list, error))?;
        }
        *self.was_ready.lock() = Some((list.raw.clone(), Instant::now()));
        Ok(())
    }

    pub(crate) async fn add(
        &self,
        request: &NetworkRequest,
        list: &ConfigList,
    ) -> Result<NetworkResult, NetworkError> {
        let args = capabilities::args(request)?;
        let capabilities = capabilities::values(request, &self.pod_cidrs.lock())?;
        let path = request.netns.clone();
        blocking(move || Ok(netns::open(&path).map(drop)?)).await?;
        let mut attachment = Attachment {
            sandbox: request.sandbox.clone(),
            pod: PodRef::of(request),
            netns: request.netns.clone(),
            how: AttachmentKind::Cni(CniAttachment {
                config: list.raw.clone(),
                args,
                capabilities,
                result: None,
            }),
        };
        // Before the first plugin runs: after a crash, DEL knows with which configuration.
        self.save(&attachment).await?;
        let AttachmentKind::Cni(cni) = &mut attachment.how else {
            unreachable!("set above")
        };
        let pod = Pod {
            sandbox: &request.sandbox,
            netns: request.netns.clone(),
            cni,
        };
        let result = match self.add_all(&pod, list).await {
            Ok(result) => result,
            Err(error) => {
                // Anything that the plugins can't undo stays recorded, and DEL of the pod retries
                // it.
                let cni = cni.clone();
                let _ = self.del(&request.sandbox, &request.netns, &cni).await;
                return Err(NetworkFailure::Add {
                    pod: PodRef::of(request).to_string(),
                    network: list.name.clone(),
                    error: Box::new(error),
                }
                .into());
            }
        };
        cni.result = Some(result);
        let mut summary = result::summary(cni.result.as_ref().unwrap_or(&Value::Null), INTERFACE);
        let for_cache = cni.clone();
        self.save(&attachment).await?;
        let dir = self.settings.cni_cache_dir.clone();
        let (network, sandbox) = (list.name.clone(), request.sandbox.clone());
        let netns = request.netns.to_string_lossy().into_owned();
        let cached =
            blocking(move || Ok(cache::write(&dir, &network, &sandbox, &netns, &for_cache)))
                .await?;
        if let Err(error) = cached {
            summary.warnings.push(format!(
                "cannot write the CNI result cache in {}: {error}",
                self.settings.cni_cache_dir.display()
            ));
        }
        if !request.port_mappings.is_empty() && !list.declares("portMappings") {
            summary.warnings.push(format!(
                "host ports do not work: no plugin of the CNI configuration {} has the capability portMappings",
                list.name
            ));
        }
        Ok(summary)
    }

    async fn add_all(&self, pod: &Pod<'_>, list: &ConfigList) -> Result<Value, PluginError> {
        let none = Map::new();
        let mut previous: Option<Value> = None;
        for plugin in &list.plugins {
            let input = list.input(plugin, &pod.cni.capabilities, previous.as_ref(), &none);
            let environment = cache::environment(pod.sandbox, &pod.netns, pod.cni);
            let answer = self.run(plugin, "ADD", environment, &input).await?;
            let kind = conf::kind(plugin);
            previous = Some(result::parse(kind, list.version.as_str(), &answer)?);
        }
        Ok(previous.unwrap_or(Value::Null))
    }

    /// Adds a recorded pod again: returns its result, or repeats an interrupted ADD.
    pub(crate) async fn add_again(
        &self,
        request: &NetworkRequest,
        cni: CniAttachment,
    ) -> Result<NetworkResult, NetworkError> {
        if let Some(result) = &cni.result {
            return Ok(result::summary(result, INTERFACE));
        }
        // The CNI specification forbids a second ADD of an interface without a DEL in between.
        self.del(&request.sandbox, &request.netns, &cni).await?;
        let list = recorded(&cni)?;
        self.add(request, &list).await
    }

    /// Runs DEL with the recorded plugins in reverse order.
    pub(crate) async fn del(
        &self,
        sandbox: &str,
        netns: &Path,
        cni: &CniAttachment,
    ) -> Result<(), NetworkError> {
        let list = recorded(cni)?;
        let pod = Pod {
            sandbox,
            netns: self.if_there(netns).await?,
            cni,
        };
        let previous = cni
            .result
            .as_ref()
            .filter(|_| list.version >= Version::WITH_CHECK);
        for plugin in list.plugins.iter().rev() {
            self.verb("DEL", &pod, &list, plugin, previous)
                .await
                .map_err(|error| NetworkFailure::Remove {
                    sandbox: sandbox.to_owned(),
                    network: list.name.clone(),
                    error: Box::new(error),
                })?;
        }
        let dir = self.settings.cni_cache_dir.clone();
        let attachments = Arc::clone(&self.attachments);
        let sandbox = sandbox.to_owned();
        blocking(move || {
            cache::remove(&dir, &list.name, &sandbox)
                .map_err(|error| NetworkFailure::ResultCache { dir, error })?;
            attachments.remove(&sandbox)
        })
        .await
    }

    pub(crate) async fn check(
        &self,
        sandbox: &str,
        netns: &Path,
        cni: &CniAttachment,
    ) -> Result<(), NetworkError> {
        let list = recorded(cni)?;
        let Some(result) = &cni.result else {
            return Err(NetworkDamage::Incomplete {
                sandbox: sandbox.to_owned(),
                network: list.name,
            }
            .into());
        };
        if !list.check || list.version < Version::WITH_CHECK {
            return Ok(());
        }
        let pod = Pod {
            sandbox,
            netns: netns.to_owned(),
            cni,
        };
        for plugin in &list.plugins {
            self.verb("CHECK", &pod, &list, plugin, Some(result))
                .await
                .map_err(|error| NetworkDamage::Plugin(Box::new(error)))?;
        }
        Ok(())
    }

    /// Kills plugin processes of an agent that was killed.
    pub(crate) async fn end_leftovers(&self) -> Vec<String> {
        let dir = self.settings.state_dir.clone();
        blocking(move || Ok(leftovers::kill(&dir)))
            .await
            .unwrap_or_default()
    }

    /// Runs GC with all valid attachments, including those of other runtimes on this host.
    pub(crate) async fn collect_garbage(&self, list: &ConfigList) -> Result<(), NetworkError> {
        if list.version < Version::WITH_STATUS || !list.collect {
            return Ok(());
        }
        let (dir, name) = (self.settings.cni_cache_dir.clone(), list.name.clone());
        let mut valid = blocking(move || Ok(cache::attachments(&dir, &name))).await?;
        for attachment in self.attachments.all() {
            if let AttachmentKind::Cni(cni) = &attachment.how
                && cni.config["name"].as_str() == Some(&list.name)
            {
                valid.push((attachment.sandbox, INTERFACE.to_owned()));
            }
        }
        valid.sort();
        valid.dedup();
        let valid: Vec<Value> = valid
            .iter()
            .map(|(sandbox, interface)| json!({ "containerID": sandbox, "ifname": interface }))
            .collect();
        let mut extra = Map::new();
        // `cni.dev/attachments` is the key of an earlier draft of the specification.
        for key in ["cni.dev/valid-attachments", "cni.dev/attachments"] {
            extra.insert(key.to_owned(), Value::Array(valid.clone()));
        }
        let mut failed = Vec::new();
        for plugin in &list.plugins {
            let input = list.input(plugin, &Map::new(), None, &extra);
            if let Err(error) = self.run(plugin, "GC", Vec::new(), &input).await {
                failed.push(ErrorChain(&error).to_string());
            }
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(NetworkFailure::Several(failed).into())
        }
    }

    async fn verb(
        &self,
        verb: &'static str,
        pod: &Pod<'_>,
        list: &ConfigList,
        plugin: &Map<String, Value>,
        previous: Option<&Value>,
    ) -> Result<(), PluginError> {
        let input = list.input(plugin, &pod.cni.capabilities, previous, &Map::new());
        let environment = cache::environment(pod.sandbox, &pod.netns, pod.cni);
        self.run(plugin, verb, environment, &input).await.map(drop)
    }

    async fn run(
        &self,
        plugin: &Map<String, Value>,
        verb: &'static str,
        environment: Vec<(&'static str, std::ffi::OsString)>,
        input: &Value,
    ) -> Result<Vec<u8>, PluginError> {
        let marks = leftovers::marks(&self.settings.state_dir);
        let environment = environment.into_iter().chain(marks).collect();
        PluginCall {
            kind: conf::kind(plugin),
            dirs: &self.settings.cni_bin_dirs,
            verb,
            environment,
            input,
            deadline: self.settings.plugin_deadline,
        }
        .execute()
        .await
    }

    /// The namespace's path, or an empty `CNI_NETNS` if it does not exist any more, as the
    /// specification requires.
    async fn if_there(&self, path: &Path) -> Result<PathBuf, NetworkError> {
        let path = path.to_owned();
        blocking(move || Ok(netns::open(&path).map(|_| path).unwrap_or_default())).await
    }

    async fn save(&self, attachment: &Attachment) -> Result<(), NetworkError> {
        let attachments = Arc::clone(&self.attachments);
        let attachment = attachment.clone();
        blocking(move || attachments.save(&attachment)).await
    }
}

fn not_ready(list: &ConfigList, error: PluginError) -> NetworkFailure {
    NetworkFailure::NotReady {
        network: list.name.clone(),
        error: Box::new(error),
    }
}

/// The configuration a pod was added with.
fn recorded(cni: &CniAttachment) -> Result<ConfigList, NetworkFailure> {
    ConfigList::from_value(cni.config.clone()).map_err(|error| {
        NetworkFailure::RecordedConfiguration {
            reason: error.to_string(),
        }
    })
}

//! Networks that plugins make: the part of libcni in a container runtime.
//!
//! What a pod was added with is recorded and used again when it goes, whatever the configuration is by
//! then.

mod cache;
mod capabilities;
mod conf;
mod documents;
mod exec;
mod leftovers;
mod outcome;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rubelet_host::netns;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::{
    Cidr, NetworkError, NetworkRequest, NetworkResult, NetworkSettings,
    attachment::{Attachment, How, Plugged, PodRef},
    attachments::Attachments,
    network::blocking,
};

pub(crate) use conf::{ConfigList, Configured};

use cache::INTERFACE;
use conf::Version;
use exec::Run;

/// How long a good answer to STATUS counts: kubelets ask every few seconds.
const STATUS_COUNTS: Duration = Duration::from_secs(10);

/// Networks that plugins make.
pub(crate) struct PluginNetwork {
    settings: Arc<NetworkSettings>,
    attachments: Arc<Attachments>,
    pod_cidrs: Mutex<Vec<Cidr>>,
    /// The configuration that was ready, and when.
    was_ready: Mutex<Option<(Value, Instant)>>,
}

/// One pod's attachment while verbs are run.
struct Pod<'a> {
    sandbox: &'a str,
    netns: PathBuf,
    plugged: &'a Plugged,
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
        *lock(&self.pod_cidrs) = cidrs.to_vec();
    }

    /// Whether the plugins are there and ready.
    pub(crate) async fn status(&self, list: &ConfigList) -> Result<(), String> {
        let dirs = &self.settings.cni_bin_dirs;
        for plugin in &list.plugins {
            let for_addresses = plugin.get("ipam").and_then(|ipam| ipam["type"].as_str());
            for kind in [conf::kind(plugin)].into_iter().chain(for_addresses) {
                exec::find(kind, dirs)
                    .map_err(|why| format!("the network {} is not ready: {why}", list.name))?;
            }
        }
        if list.version < Version::WITH_STATUS {
            return Ok(());
        }
        let was_ready = lock(&self.was_ready)
            .as_ref()
            .is_some_and(|(raw, at)| *raw == list.raw && at.elapsed() < STATUS_COUNTS);
        if was_ready {
            return Ok(());
        }
        let none = Map::new();
        for plugin in &list.plugins {
            let input = list.input(plugin, &none, None, &none);
            self.run(plugin, "STATUS", Vec::new(), &input)
                .await
                .map_err(|why| format!("the network {} is not ready: {why}", list.name))?;
        }
        *lock(&self.was_ready) = Some((list.raw.clone(), Instant::now()));
        Ok(())
    }

    pub(crate) async fn add(
        &self,
        request: &NetworkRequest,
        list: &ConfigList,
    ) -> Result<NetworkResult, NetworkError> {
        let args = capabilities::args(request).map_err(NetworkError::Refused)?;
        let capabilities =
            capabilities::values(request, &lock(&self.pod_cidrs)).map_err(NetworkError::Refused)?;
        let path = request.netns.clone();
        blocking(move || {
            netns::open(&path)
                .map(drop)
                .map_err(|error| NetworkError::Failed(error.to_string()))
        })
        .await?;
        let mut attachment = Attachment {
            sandbox: request.sandbox.clone(),
            pod: PodRef::of(request),
            netns: request.netns.clone(),
            how: How::Cni(Plugged {
                config: list.raw.clone(),
                args,
                capabilities,
                result: None,
            }),
        };
        self.save(&attachment).await?;
        let How::Cni(plugged) = &mut attachment.how else {
            unreachable!("made so above")
        };
        let pod = Pod {
            sandbox: &request.sandbox,
            netns: request.netns.clone(),
            plugged,
        };
        let result = match self.add_all(&pod, list).await {
            Ok(result) => result,
            Err(why) => {
                // What the plugins can't undo stays recorded, and is tried again with the pod.
                let plugged = plugged.clone();
                let _ = self.del(&request.sandbox, &request.netns, &plugged).await;
                return Err(NetworkError::Failed(format!(
                    "cannot add pod {} to the network {}: {why}",
                    PodRef::of(request),
                    list.name
                )));
            }
        };
        plugged.result = Some(result);
        let mut summary =
            outcome::summary(plugged.result.as_ref().unwrap_or(&Value::Null), INTERFACE);
        let for_cache = plugged.clone();
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
                "host ports do not work: the CNI configuration {} has no plugin with the capability portMappings",
                list.name
            ));
        }
        Ok(summary)
    }

    async fn add_all(&self, pod: &Pod<'_>, list: &ConfigList) -> Result<Value, String> {
        let none = Map::new();
        let mut previous: Option<Value> = None;
        for plugin in &list.plugins {
            let input = list.input(plugin, &pod.plugged.capabilities, previous.as_ref(), &none);
            let environment = cache::environment(pod.sandbox, &pod.netns, pod.plugged);
            let answer = self.run(plugin, "ADD", environment, &input).await?;
            let kind = conf::kind(plugin);
            previous = Some(outcome::parse(kind, list.version.as_str(), &answer)?);
        }
        Ok(previous.unwrap_or(Value::Null))
    }

    /// A pod that was added before: its result again, or, when adding it was cut short, from anew.
    pub(crate) async fn add_again(
        &self,
        request: &NetworkRequest,
        plugged: Plugged,
    ) -> Result<NetworkResult, NetworkError> {
        if let Some(result) = &plugged.result {
            return Ok(outcome::summary(result, INTERFACE));
        }
        self.del(&request.sandbox, &request.netns, &plugged).await?;
        let list = recorded(&plugged)?;
        self.add(request, &list).await
    }

    /// Takes a pod off, with the plugins it was added by, in the other direction.
    pub(crate) async fn del(
        &self,
        sandbox: &str,
        netns: &Path,
        plugged: &Plugged,
    ) -> Result<(), NetworkError> {
        let list = recorded(plugged)?;
        let pod = Pod {
            sandbox,
            netns: self.if_there(netns).await?,
            plugged,
        };
        let previous = plugged
            .result
            .as_ref()
            .filter(|_| list.version >= Version::WITH_CHECK);
        for plugin in list.plugins.iter().rev() {
            self.verb("DEL", &pod, &list, plugin, previous)
                .await
                .map_err(|why| {
                    NetworkError::Failed(format!(
                        "cannot remove sandbox {sandbox} from the network {}: {why}",
                        list.name
                    ))
                })?;
        }
        let dir = self.settings.cni_cache_dir.clone();
        let attachments = Arc::clone(&self.attachments);
        let sandbox = sandbox.to_owned();
        blocking(move || {
            cache::remove(&dir, &list.name, &sandbox).map_err(|error| {
                NetworkError::Failed(format!(
                    "cannot remove a CNI result in {}: {error}",
                    dir.display()
                ))
            })?;
            attachments.remove(&sandbox)
        })
        .await
    }

    pub(crate) async fn check(
        &self,
        sandbox: &str,
        netns: &Path,
        plugged: &Plugged,
    ) -> Result<(), NetworkError> {
        let list = recorded(plugged)?;
        let Some(result) = &plugged.result else {
            return Err(NetworkError::Broken(format!(
                "sandbox {sandbox} was never wholly added to the network {}",
                list.name
            )));
        };
        if !list.check || list.version < Version::WITH_CHECK {
            return Ok(());
        }
        let pod = Pod {
            sandbox,
            netns: netns.to_owned(),
            plugged,
        };
        for plugin in &list.plugins {
            self.verb("CHECK", &pod, &list, plugin, Some(result))
                .await
                .map_err(NetworkError::Broken)?;
        }
        Ok(())
    }

    /// Ends plugins that an agent which died has left running.
    pub(crate) async fn end_leftovers(&self) -> Vec<String> {
        let dir = self.settings.state_dir.clone();
        blocking(move || Ok(leftovers::kill(&dir)))
            .await
            .unwrap_or_default()
    }

    /// Tells the plugins which attachments there are, so that they free what belongs to others. Those
    /// that another runtime on this host made count too.
    pub(crate) async fn collect_garbage(&self, list: &ConfigList) -> Result<(), NetworkError> {
        if list.version < Version::WITH_STATUS || !list.collect {
            return Ok(());
        }
        let (dir, name) = (self.settings.cni_cache_dir.clone(), list.name.clone());
        let mut valid = blocking(move || Ok(cache::attachments(&dir, &name))).await?;
        for attachment in self.attachments.all() {
            if let How::Cni(plugged) = &attachment.how
                && plugged.config["name"].as_str() == Some(&list.name)
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
        // The second name is from before the specification was settled.
        for key in ["cni.dev/valid-attachments", "cni.dev/attachments"] {
            extra.insert(key.to_owned(), Value::Array(valid.clone()));
        }
        let mut failed = Vec::new();
        for plugin in &list.plugins {
            let input = list.input(plugin, &Map::new(), None, &extra);
            failed.extend(self.run(plugin, "GC", Vec::new(), &input).await.err());
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(NetworkError::Failed(failed.join("; ")))
        }
    }

    async fn verb(
        &self,
        verb: &'static str,
        pod: &Pod<'_>,
        list: &ConfigList,
        plugin: &Map<String, Value>,
        previous: Option<&Value>,
    ) -> Result<(), String> {
        let input = list.input(plugin, &pod.plugged.capabilities, previous, &Map::new());
        let environment = cache::environment(pod.sandbox, &pod.netns, pod.plugged);
        self.run(plugin, verb, environment, &input).await.map(drop)
    }

    async fn run(
        &self,
        plugin: &Map<String, Value>,
        verb: &'static str,
        environment: Vec<(&'static str, std::ffi::OsString)>,
        input: &Value,
    ) -> Result<Vec<u8>, String> {
        let marks = leftovers::marks(&self.settings.state_dir);
        let environment = environment.into_iter().chain(marks).collect();
        Run {
            kind: conf::kind(plugin),
            dirs: &self.settings.cni_bin_dirs,
            verb,
            environment,
            input,
            deadline: self.settings.plugin_deadline,
        }
        .go()
        .await
    }

    /// The namespace's path, empty when there is none any more: so plugins are told.
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

/// The configuration a pod was added with.
fn recorded(plugged: &Plugged) -> Result<ConfigList, NetworkError> {
    ConfigList::from_value(plugged.config.clone()).map_err(|why| {
        NetworkError::Failed(format!("the recorded CNI configuration of a pod {why}"))
    })
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

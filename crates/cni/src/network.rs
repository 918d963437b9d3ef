//! The trait the runtime knows, and what is behind it.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{sync::Semaphore, task::JoinSet, time::timeout};

use crate::{
    Cidr, NetworkChoice, NetworkError, NetworkRequest, NetworkResult, NetworkSettings,
    attachment::{Attachment, How},
    attachments::{Attachments, check_id},
    bridge::BridgeNetwork,
    plugins::{ConfigList, Configured, PluginNetwork, lock},
};

/// How many pods that are gone plugins are told of at a time.
const BURIALS: usize = 16;

/// How long the plugins may take to free what no pod has. Pods that come meanwhile wait for it.
const COLLECTING: Duration = Duration::from_secs(10);

/// Pauses and tries until no pod is being added: then what no pod has is known.
const QUIET: (Duration, u32) = (Duration::from_millis(500), 20);

/// Puts pods on a network and takes them off it. Calls for different sandboxes may run at the same
/// time; calls for one sandbox are made one after the other by the caller.
#[async_trait]
pub trait PodNetwork: Send + Sync {
    /// Whether pods can be added now.
    ///
    /// # Errors
    /// Why not: the message of the CRI's condition `NetworkReady`.
    async fn status(&self) -> Result<(), String>;

    /// What works less well than it should although pods can be added, one sentence each.
    async fn warnings(&self) -> Vec<String>;

    /// Puts the pod's network namespace on the network. Adding a pod that is already there gives
    /// the same result again.
    ///
    /// # Errors
    /// See [`NetworkError`]. What was begun is recorded, or undone: `del` cleans up either way.
    async fn add(&self, request: &NetworkRequest) -> Result<NetworkResult, NetworkError>;

    /// Takes the pod off the network and frees what it had. A pod that isn't known, or whose
    /// network namespace is gone, is no error.
    ///
    /// # Errors
    /// Something could not be freed; `del` can be called again.
    async fn del(&self, request: &NetworkRequest) -> Result<(), NetworkError>;

    /// Whether the pod is still on the network as it was added (CNI's CHECK). That it is not is among the
    /// [`PodNetwork::warnings`] until it is, or until the pod is gone.
    ///
    /// # Errors
    /// [`NetworkError::Broken`] with what is missing.
    async fn check(&self, request: &NetworkRequest) -> Result<(), NetworkError>;

    /// Frees what belongs to sandboxes other than `live` and needs no plugin: records, addresses,
    /// interfaces, rules. To be called at start, before the first `add`, with [`PodNetwork::bury`]
    /// after it. Tells what was freed.
    ///
    /// # Errors
    /// What was left; everything else was freed.
    async fn reconcile(&self, live: &BTreeSet<String>) -> Result<Vec<String>, NetworkError>;

    /// Lets plugins free what belongs to sandboxes that the last `reconcile` found dead. It may take
    /// as long as the plugins do; other calls need not wait for it. Tells what was freed.
    ///
    /// # Errors
    /// What was left; everything else was freed.
    async fn bury(&self) -> Result<Vec<String>, NetworkError>;

    /// Sets the ranges that new pods get their addresses from; none means those of the settings.
    /// Pods that run keep theirs. Plugins with the capability `ipRanges` are told as well.
    ///
    /// # Errors
    /// A range is too small, of a family twice, or taken by another interface of the host.
    async fn set_pod_cidrs(&self, cidrs: &[Cidr]) -> Result<(), NetworkError>;
}

/// The network of the pods, as the settings tell. Touches nothing yet; records are read at the first
/// call.
#[must_use]
pub fn network(settings: NetworkSettings) -> Arc<dyn PodNetwork> {
    Arc::new(Network {
        settings: Arc::new(settings),
        parts: Mutex::default(),
        dead: Mutex::default(),
        broken: Mutex::default(),
        adding: tokio::sync::RwLock::default(),
    })
}

/// How many pods that are off the network are named.
const MOST_TOLD: usize = 5;
/// What containerd says while there is no CNI configuration.
const NOT_INITIALIZED: &str = "Network plugin returns error: cni plugin not initialized";

/// The network that looks for each pod which kind it gets.
struct Network {
    settings: Arc<NetworkSettings>,
    parts: Mutex<Option<Parts>>,
    /// What plugins have to be told of.
    dead: Mutex<Vec<Attachment>>,
    /// What the last check found of pods that are not on the network as they were added, by sandbox.
    broken: Mutex<BTreeMap<String, String>>,
    /// Shared by calls that add pods through plugins. Held alone while plugins free what no pod has:
    /// they must not take a new pod for none.
    adding: tokio::sync::RwLock<()>,
}

/// What works once the records were read.
#[derive(Clone)]
struct Parts {
    attachments: Arc<Attachments>,
    bridge: Arc<BridgeNetwork>,
    plugins: Arc<PluginNetwork>,
}

impl Network {
    /// Reads the records at the first call; an error is found again by the next one.
    async fn parts(&self) -> Result<Parts, NetworkError> {
        let known = self
            .parts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(parts) = known {
            return Ok(parts);
        }
        let settings = Arc::clone(&self.settings);
        let opened = blocking(move || {
            let name = &settings.bridge_name;
            check_bridge_name(name)?;
            let attachments = Arc::new(Attachments::open(settings.state_dir.join("attachments"))?);
            Ok(Parts {
                bridge: Arc::new(BridgeNetwork::new(
                    Arc::clone(&settings),
                    Arc::clone(&attachments),
                )?),
                plugins: Arc::new(PluginNetwork::new(settings, Arc::clone(&attachments))),
                attachments,
            })
        })
        .await?;
        // Two first calls may both have read; the state of the one that came first counts.
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(parts.get_or_insert(opened).clone())
    }

    /// The CNI configuration, if there is one.
    async fn configured(&self) -> Configured {
        let found = match self.settings.choice {
            NetworkChoice::Bridge => return Configured::None,
            NetworkChoice::Any | NetworkChoice::Cni => self.look().await,
        };
        match found {
            // In the words of other runtimes, which those who wait for a network know.
            Configured::None if self.settings.choice == NetworkChoice::Cni => {
                Configured::Broken(NOT_INITIALIZED.to_owned())
            }
            found => found,
        }
    }

    async fn look(&self) -> Configured {
        let dir = self.settings.cni_conf_dir.clone();
        match blocking(move || Ok(Configured::look(&dir))).await {
            Ok(configured) => configured,
            Err(error) => Configured::Broken(error.to_string()),
        }
    }

    /// Lets the plugins free what no pod has, in a moment in which none is being added. Nobody queues
    /// behind somebody who waits for that moment.
    async fn collect_garbage(
        &self,
        plugins: &PluginNetwork,
        list: &ConfigList,
    ) -> Result<(), String> {
        let (pause, tries) = QUIET;
        for _ in 0..tries {
            let Ok(_alone) = self.adding.try_write() else {
                tokio::time::sleep(pause).await;
                continue;
            };
            return match timeout(COLLECTING, plugins.collect_garbage(list)).await {
                Ok(done) => done.map_err(|error| error.to_string()),
                Err(_) => Err(format!(
                    "the plugins of the network {} did not free what no pod has within {} s (GC)",
                    list.name,
                    COLLECTING.as_secs()
                )),
            };
        }
        Err("what no pod has was not looked for: pods were added all the time".to_owned())
    }
}

/// What was freed, in words.
fn buried(attachment: &Attachment) -> String {
    format!("sandbox {} of pod {}", attachment.sandbox, attachment.pod)
}

fn outcome(freed: Vec<String>, left: &[String]) -> Result<Vec<String>, NetworkError> {
    if left.is_empty() {
        Ok(freed)
    } else {
        Err(NetworkError::Failed(left.join("; ")))
    }
}

#[async_trait]
impl PodNetwork for Network {
    async fn status(&self) -> Result<(), String> {
        let parts = self.parts().await.map_err(|error| error.to_string())?;
        let bridge = parts.bridge;
        let configured = self.configured().await;
        if matches!(configured, Configured::None) {
            return blocking(move || bridge.status())
                .await
                .map_err(|error| error.to_string());
        }
        // Pods from before the configuration came are still on the bridge.
        let kept = blocking(move || {
            bridge.keep_tables();
            Ok(())
        });
        kept.await.map_err(|error| error.to_string())?;
        match configured {
            Configured::List(list) => parts.plugins.status(&list).await,
            Configured::Broken(why) => Err(why),
            Configured::None => unreachable!("answered above"),
        }
    }

    async fn warnings(&self) -> Vec<String> {
        let parts = match self.parts().await {
            Ok(parts) => parts,
            Err(error) => return vec![error.to_string()],
        };
        let mut warnings = parts.attachments.damaged().to_vec();
        let bridge = parts.bridge;
        if let Ok(more) = blocking(move || Ok(bridge.warnings())).await {
            warnings.extend(more);
        }
        let attachments = parts.attachments;
        let mut broken = lock(&self.broken);
        broken.retain(|sandbox, _| attachments.get(sandbox).is_some());
        warnings.extend(broken.values().take(MOST_TOLD).cloned());
        if let Some(more @ 1..) = broken.len().checked_sub(MOST_TOLD) {
            warnings.push(format!(
                "{more} more pods are not on the network as they were added"
            ));
        }
        warnings
    }

    async fn add(&self, request: &NetworkRequest) -> Result<NetworkResult, NetworkError> {
        check_id(&request.sandbox)?;
        // Ports that are only declared lead nowhere.
        let mut request = request.clone();
        request.port_mappings.retain(|port| port.host_port != 0);
        let parts = self.parts().await?;
        // A pod that is there stays as it was added, whatever the configuration is by now.
        let known = parts.attachments.get(&request.sandbox);
        let on_bridge = match known.map(|attachment| attachment.how) {
            Some(How::Bridge(_)) => true,
            Some(How::Cni(plugged)) => {
                let _shared = self.adding.read().await;
                return parts.plugins.add_again(&request, plugged).await;
            }
            None => false,
        };
        if !on_bridge {
            match self.configured().await {
                Configured::None => {}
                Configured::Broken(why) => return Err(NetworkError::Failed(why)),
                Configured::List(list) => {
                    let _shared = self.adding.read().await;
                    return parts.plugins.add(&request, &list).await;
                }
            }
        }
        blocking(move || parts.bridge.add(&request)).await
    }

    async fn del(&self, request: &NetworkRequest) -> Result<(), NetworkError> {
        let parts = self.parts().await?;
        let Some(attachment) = parts.attachments.get(&request.sandbox) else {
            // The bridge may know it all the same: its record may have been lost.
            let sandbox = request.sandbox.clone();
            return blocking(move || parts.bridge.forget(&sandbox)).await;
        };
        match attachment.how {
            How::Cni(plugged) => {
                parts
                    .plugins
                    .del(&attachment.sandbox, &attachment.netns, &plugged)
                    .await
            }
            How::Bridge(_) => blocking(move || parts.bridge.del(&attachment.sandbox)).await,
        }
    }

    async fn check(&self, request: &NetworkRequest) -> Result<(), NetworkError> {
        let parts = self.parts().await?;
        let Some(attachment) = parts.attachments.get(&request.sandbox) else {
            return Err(NetworkError::Broken(format!(
                "sandbox {} is not on the network",
                request.sandbox
            )));
        };
        let pod = attachment.pod.clone();
        let checked = match attachment.how {
            How::Cni(plugged) => {
                parts
                    .plugins
                    .check(&attachment.sandbox, &attachment.netns, &plugged)
                    .await
            }
            How::Bridge(_) => {
                let request = request.clone();
                blocking(move || parts.bridge.check(&request)).await
            }
        };
        let mut broken = lock(&self.broken);
        match &checked {
            Ok(()) => broken.remove(&request.sandbox),
            Err(error) => broken.insert(
                request.sandbox.clone(),
                format!(
                    "the pod {pod} is not on the network as it was added: {error}; delete it to have it added again"
                ),
            ),
        };
        checked
    }

    async fn reconcile(&self, live: &BTreeSet<String>) -> Result<Vec<String>, NetworkError> {
        let parts = self.parts().await?;
        let mut freed = parts.plugins.end_leftovers().await;
        let mut left = Vec::new();
        let mut on_bridge = false;
        let mut dead = Vec::new();
        for attachment in parts.attachments.all() {
            let stays = live.contains(&attachment.sandbox);
            on_bridge |= stays && matches!(attachment.how, How::Bridge(_));
            if stays {
                continue;
            }
            if matches!(attachment.how, How::Cni(_)) {
                dead.push(attachment);
                continue;
            }
            let gone = NetworkRequest {
                sandbox: attachment.sandbox.clone(),
                ..NetworkRequest::default()
            };
            match self.del(&gone).await {
                Ok(()) => freed.push(buried(&attachment)),
                Err(error) => left.push(error.to_string()),
            }
        }
        *self.dead.lock().unwrap_or_else(PoisonError::into_inner) = dead;
        let configured = self.configured().await;
        let bridge = Arc::clone(&parts.bridge);
        let live = live.clone();
        let unused = !on_bridge && !matches!(configured, Configured::None);
        let done = blocking(move || match unused {
            true => bridge.retire(),
            false => bridge.reconcile(&live),
        })
        .await;
        match done {
            Ok(more) => freed.extend(more),
            Err(error) => left.push(error.to_string()),
        }
        outcome(freed, &left)
    }

    async fn bury(&self) -> Result<Vec<String>, NetworkError> {
        let parts = self.parts().await?;
        let dead = std::mem::take(&mut *self.dead.lock().unwrap_or_else(PoisonError::into_inner));
        let turns = Arc::new(Semaphore::new(BURIALS));
        let mut burials = JoinSet::new();
        for attachment in dead {
            let (plugins, turns) = (Arc::clone(&parts.plugins), Arc::clone(&turns));
            burials.spawn(async move {
                // It is never closed.
                let _turn = turns.acquire().await;
                let How::Cni(plugged) = &attachment.how else {
                    return Ok(buried(&attachment));
                };
                let (sandbox, netns) = (&attachment.sandbox, &attachment.netns);
                let done = plugins.del(sandbox, netns, plugged).await;
                done.map(|()| buried(&attachment))
            });
        }
        let (mut freed, mut left) = (Vec::new(), Vec::new());
        while let Some(done) = burials.join_next().await {
            match done {
                Ok(Ok(line)) => freed.push(line),
                Ok(Err(error)) => left.push(error.to_string()),
                Err(error) => left.push(error.to_string()),
            }
        }
        if let Configured::List(list) = self.configured().await {
            left.extend(self.collect_garbage(&parts.plugins, &list).await.err());
        }
        outcome(freed, &left)
    }

    async fn set_pod_cidrs(&self, cidrs: &[Cidr]) -> Result<(), NetworkError> {
        let parts = self.parts().await?;
        parts.plugins.set_pod_cidrs(cidrs);
        // With plugins there needn't be a bridge; the ranges are kept for when there is one.
        let set_up = matches!(self.configured().await, Configured::None);
        let cidrs = cidrs.to_vec();
        blocking(move || parts.bridge.set_pod_cidrs(&cidrs, set_up)).await
    }
}

/// Runs what blocks where it may.
pub(crate) async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, NetworkError> + Send + 'static,
) -> Result<T, NetworkError> {
    tokio::task::spawn_blocking(act)
        .await
        .unwrap_or_else(|error| {
            Err(NetworkError::Failed(format!(
                "the network's work ended early: {error}"
            )))
        })
}

/// The kernel's rule for names of interfaces, less what `nft` would have to quote.
fn check_bridge_name(name: &str) -> Result<(), NetworkError> {
    let fits = (1..=15).contains(&name.len())
        && Path::new(name).components().count() == 1
        && name
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if fits {
        return Ok(());
    }
    Err(NetworkError::Refused(format!(
        "{name:?} cannot be the name of the pods' bridge: it begins with a letter and has at most 15 letters, digits, '_' and '-'"
    )))
}

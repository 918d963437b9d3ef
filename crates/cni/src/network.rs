//! The trait for the runtime, and its implementation.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, task::JoinSet, time::timeout};

use crate::{
    Cidr, NetworkChoice, NetworkDamage, NetworkError, NetworkFailure, NetworkRefusal,
    NetworkRequest, NetworkResult, NetworkSettings,
    attachment::{Attachment, AttachmentKind},
    attachments::{Attachments, check_id},
    blocking::blocking,
    bridge::BridgeNetwork,
    plugins::{ConfigDir, ConfigList, PluginNetwork},
};

/// Number of DELs of dead pods that run concurrently.
const CONCURRENT_DELS: usize = 16;

/// Deadline of GC. New pods wait for it.
const GC_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval and number of attempts to find a moment in which no pod is being added; only then is
/// the set of valid attachments complete.
const GC_RETRY: (Duration, u32) = (Duration::from_millis(500), 20);

/// Adds pods to a network and removes them. Calls for different sandboxes may run concurrently; the
/// caller serializes calls for the same sandbox.
#[async_trait]
pub trait PodNetwork: Send + Sync {
    /// Checks whether pods can be added now.
    ///
    /// # Errors
    /// Why not: the message of the CRI's condition `NetworkReady`.
    async fn status(&self) -> Result<(), NetworkError>;

    /// Problems that do not keep pods from being added, one sentence each.
    async fn warnings(&self) -> Vec<String>;

    /// Attaches the pod's network namespace to the network. Adding a pod again returns the same
    /// result.
    ///
    /// # Errors
    /// See [`NetworkError`]. `del` cleans up after a failure.
    async fn add(&self, request: &NetworkRequest) -> Result<NetworkResult, NetworkError>;

    /// Removes the pod from the network and frees its resources. An unknown pod or a missing
    /// network namespace is no error.
    ///
    /// # Errors
    /// A resource could not be freed; call `del` again.
    async fn del(&self, request: &NetworkRequest) -> Result<(), NetworkError>;

    /// Checks that the pod is still on the network as it was added (CNI's CHECK). A failure is
    /// among the [`PodNetwork::warnings`] until the check succeeds or the pod is removed.
    ///
    /// # Errors
    /// [`NetworkError::Broken`], naming what is missing.
    async fn check(&self, request: &NetworkRequest) -> Result<(), NetworkError>;

    /// Frees records, addresses, interfaces and rules of sandboxes other than `live`, as far as no
    /// plugin is needed. Call it at the start, before the first `add` and before
    /// [`PodNetwork::collect_garbage`]. Returns what was freed.
    ///
    /// # Errors
    /// Errors for what could not be freed; everything else was.
    async fn reconcile(&self, live: &BTreeSet<String>) -> Result<Vec<String>, NetworkError>;

    /// Runs the plugins for sandboxes that the last `reconcile` found dead (DEL), and GC. It may
    /// take as long as the plugins do; other calls need not wait for it. Returns what was freed.
    ///
    /// # Errors
    /// Errors for what could not be freed; everything else was.
    async fn collect_garbage(&self) -> Result<Vec<String>, NetworkError>;

    /// Sets the ranges for addresses of new pods; an empty list means those of the settings.
    /// Running pods keep their addresses. Plugins with the capability `ipRanges` get the ranges as
    /// well.
    ///
    /// # Errors
    /// A range is too small, has the same IP family as another, or overlaps with a route of the
    /// host.
    async fn set_pod_cidrs(&self, cidrs: &[Cidr]) -> Result<(), NetworkError>;
}

/// The pod network for these settings. Does nothing yet; records are read at the first call.
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

/// Maximum number of pods with a damaged network in the warnings.
const MAX_WARNINGS: usize = 5;
/// containerd's message while there is no CNI configuration.
const NOT_INITIALIZED: &str = "Network plugin returns error: cni plugin not initialized";

/// The network that chooses between plugins and the bridge for each pod.
struct Network {
    settings: Arc<NetworkSettings>,
    parts: Mutex<Option<Parts>>,
    /// Attachments of dead sandboxes, which need a DEL by plugins.
    dead: Mutex<Vec<Attachment>>,
    /// Failures of the last checks, by sandbox.
    broken: Mutex<BTreeMap<String, String>>,
    /// Read-locked by ADD, write-locked by GC: GC frees all attachments that are not in its list,
    /// and must not run while a pod is being added.
    adding: tokio::sync::RwLock<()>,
}

/// The parts that need the records.
#[derive(Clone)]
struct Parts {
    attachments: Arc<Attachments>,
    bridge: Arc<BridgeNetwork>,
    plugins: Arc<PluginNetwork>,
}

impl Network {
    /// Reads the records at the first call; after an error the next call tries again.
    async fn parts(&self) -> Result<Parts, NetworkError> {
        let known = self.parts.lock().clone();
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
        // Concurrent first calls may both have read the records; the first result is used.
        let mut parts = self.parts.lock();
        Ok(parts.get_or_insert(opened).clone())
    }

    /// The CNI configuration, if there is one.
    async fn configured(&self) -> ConfigDir {
        let found = match self.settings.choice {
            NetworkChoice::Bridge => return ConfigDir::None,
            NetworkChoice::Any | NetworkChoice::Cni => self.look().await,
        };
        match found {
            // Same message as containerd: scripts and operators that wait for a network know it.
            ConfigDir::None if self.settings.choice == NetworkChoice::Cni => {
                ConfigDir::Broken(NOT_INITIALIZED.to_owned())
            }
            found => found,
        }
    }

    async fn look(&self) -> ConfigDir {
        let dir = self.settings.cni_conf_dir.clone();
        match blocking(move || Ok(ConfigDir::read(&dir))).await {
            Ok(configured) => configured,
            Err(error) => ConfigDir::Broken(error.to_string()),
        }
    }

    /// Runs GC while no pod is being added. Uses `try_write`, because a queued writer would block
    /// all new readers, which are pods.
    async fn collect_garbage(
        &self,
        plugins: &PluginNetwork,
        list: &ConfigList,
    ) -> Result<(), NetworkError> {
        let (pause, tries) = GC_RETRY;
        for _ in 0..tries {
            let Ok(_alone) = self.adding.try_write() else {
                tokio::time::sleep(pause).await;
                continue;
            };
            return match timeout(GC_TIMEOUT, plugins.collect_garbage(list)).await {
                Ok(done) => done,
                Err(_) => Err(NetworkFailure::CollectGarbageDeadline {
                    network: list.name.clone(),
                    deadline: GC_TIMEOUT,
                }
                .into()),
            };
        }
        Err(NetworkFailure::CollectGarbageSkipped.into())
    }
}

/// A line about what was freed.
fn describe(attachment: &Attachment) -> String {
    format!("sandbox {} of pod {}", attachment.sandbox, attachment.pod)
}

fn outcome(freed: Vec<String>, left: Vec<String>) -> Result<Vec<String>, NetworkError> {
    if left.is_empty() {
        Ok(freed)
    } else {
        Err(NetworkFailure::Several(left).into())
    }
}

#[async_trait]
impl PodNetwork for Network {
    async fn status(&self) -> Result<(), NetworkError> {
        let parts = self.parts().await?;
        let bridge = parts.bridge;
        let configured = self.configured().await;
        if matches!(configured, ConfigDir::None) {
            return blocking(move || bridge.status()).await;
        }
        // Pods that were added before there was a CNI configuration are still on the bridge.
        let kept = blocking(move || {
            bridge.ensure_tables();
            Ok(())
        });
        kept.await?;
        match configured {
            ConfigDir::List(list) => parts.plugins.status(&list).await,
            ConfigDir::Broken(why) => Err(NetworkFailure::Configuration(why).into()),
            ConfigDir::None => unreachable!("answered above"),
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
        let mut broken = self.broken.lock();
        broken.retain(|sandbox, _| attachments.get(sandbox).is_some());
        warnings.extend(broken.values().take(MAX_WARNINGS).cloned());
        if let Some(more @ 1..) = broken.len().checked_sub(MAX_WARNINGS) {
            warnings.push(format!("{more} more pods have a damaged network"));
        }
        warnings
    }

    async fn add(&self, request: &NetworkRequest) -> Result<NetworkResult, NetworkError> {
        check_id(&request.sandbox)?;
        // Ports without a host port need no mapping.
        let mut request = request.clone();
        request.port_mappings.retain(|port| port.host_port != 0);
        let parts = self.parts().await?;
        // A recorded pod keeps its network, even if the configuration has changed since: a second one
        // would leave the addresses of the first one with nobody to free them.
        let known = parts.attachments.get(&request.sandbox);
        let on_bridge = match known.map(|attachment| attachment.how) {
            Some(AttachmentKind::Bridge(_)) => true,
            Some(AttachmentKind::Cni(cni)) => {
                let _shared = self.adding.read().await;
                return parts.plugins.add_again(&request, cni).await;
            }
            None => false,
        };
        if !on_bridge {
            match self.configured().await {
                ConfigDir::None => {}
                ConfigDir::Broken(why) => return Err(NetworkFailure::Configuration(why).into()),
                ConfigDir::List(list) => {
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
            // The bridge may have recovered its lease after its record was lost.
            let sandbox = request.sandbox.clone();
            return blocking(move || parts.bridge.forget(&sandbox)).await;
        };
        match attachment.how {
            AttachmentKind::Cni(cni) => {
                parts
                    .plugins
                    .del(&attachment.sandbox, &attachment.netns, &cni)
                    .await
            }
            AttachmentKind::Bridge(_) => {
                blocking(move || parts.bridge.del(&attachment.sandbox)).await
            }
        }
    }

    async fn check(&self, request: &NetworkRequest) -> Result<(), NetworkError> {
        let parts = self.parts().await?;
        let Some(attachment) = parts.attachments.get(&request.sandbox) else {
            return Err(NetworkDamage::NotAttached(request.sandbox.clone()).into());
        };
        let pod = attachment.pod.clone();
        let checked = match attachment.how {
            AttachmentKind::Cni(cni) => {
                parts
                    .plugins
                    .check(&attachment.sandbox, &attachment.netns, &cni)
                    .await
            }
            AttachmentKind::Bridge(_) => {
                let request = request.clone();
                blocking(move || parts.bridge.check(&request)).await
            }
        };
        // If the pod was removed during its check, `warnings` drops this entry.
        let mut broken = self.broken.lock();
        match &checked {
            Ok(()) => broken.remove(&request.sandbox),
            Err(error) => broken.insert(
                request.sandbox.clone(),
                format!(
                    "the network of pod {pod} is damaged: {error}; delete the pod to recreate it"
                ),
            ),
        };
        checked
    }

    async fn reconcile(&self, live: &BTreeSet<String>) -> Result<Vec<String>, NetworkError> {
        let parts = self.parts().await?;
        // First: a plugin that outlived its agent may still be adding a pod whose DEL comes now.
        let mut freed = parts.plugins.end_leftovers().await;
        let mut left = Vec::new();
        let mut on_bridge = false;
        let mut dead = Vec::new();
        for attachment in parts.attachments.all() {
            let stays = live.contains(&attachment.sandbox);
            on_bridge |= stays && matches!(attachment.how, AttachmentKind::Bridge(_));
            if stays {
                continue;
            }
            if matches!(attachment.how, AttachmentKind::Cni(_)) {
                dead.push(attachment);
                continue;
            }
            let gone = NetworkRequest {
                sandbox: attachment.sandbox.clone(),
                ..NetworkRequest::default()
            };
            match self.del(&gone).await {
                Ok(()) => freed.push(describe(&attachment)),
                Err(error) => left.push(error.to_string()),
            }
        }
        // DEL of plugins may take long: `collect_garbage` runs it while new pods start.
        *self.dead.lock() = dead;
        let configured = self.configured().await;
        let bridge = Arc::clone(&parts.bridge);
        let live = live.clone();
        // A bridge from the time before there was a CNI configuration, once its last pod is gone.
        let unused = !on_bridge && !matches!(configured, ConfigDir::None);
        let done = blocking(move || match unused {
            true => bridge.remove_unused(),
            false => bridge.reconcile(&live),
        })
        .await;
        match done {
            Ok(more) => freed.extend(more),
            Err(error) => left.push(error.to_string()),
        }
        outcome(freed, left)
    }

    async fn collect_garbage(&self) -> Result<Vec<String>, NetworkError> {
        let parts = self.parts().await?;
        // A DEL that fails keeps its attachment's record, so that the next start repeats it.
        let dead = std::mem::take(&mut *self.dead.lock());
        let turns = Arc::new(Semaphore::new(CONCURRENT_DELS));
        let mut deletions = JoinSet::new();
        for attachment in dead {
            let (plugins, turns) = (Arc::clone(&parts.plugins), Arc::clone(&turns));
            deletions.spawn(async move {
                // The semaphore is never closed.
                let _turn = turns.acquire().await;
                let AttachmentKind::Cni(cni) = &attachment.how else {
                    return Ok(describe(&attachment));
                };
                let (sandbox, netns) = (&attachment.sandbox, &attachment.netns);
                let done = plugins.del(sandbox, netns, cni).await;
                done.map(|()| describe(&attachment))
            });
        }
        let (mut freed, mut left) = (Vec::new(), Vec::new());
        while let Some(done) = deletions.join_next().await {
            match done {
                Ok(Ok(line)) => freed.push(line),
                Ok(Err(error)) => left.push(error.to_string()),
                Err(error) => left.push(error.to_string()),
            }
        }
        if let ConfigDir::List(list) = self.configured().await {
            let done = self.collect_garbage(&parts.plugins, &list).await;
            left.extend(done.err().map(|error| error.to_string()));
        }
        outcome(freed, left)
    }

    async fn set_pod_cidrs(&self, cidrs: &[Cidr]) -> Result<(), NetworkError> {
        let parts = self.parts().await?;
        parts.plugins.set_pod_cidrs(cidrs);
        // With plugins there may be no bridge; the ranges are stored for later.
        let set_up = matches!(self.configured().await, ConfigDir::None);
        let cidrs = cidrs.to_vec();
        blocking(move || parts.bridge.set_pod_cidrs(&cidrs, set_up)).await
    }
}

/// The kernel's rule for interface names, without characters that `nft` would have to quote.
fn check_bridge_name(name: &str) -> Result<(), NetworkRefusal> {
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
    Err(NetworkRefusal::BridgeName(name.to_owned()))
}
